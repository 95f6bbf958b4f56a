package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/observe/recording/replay"
	"github.com/leatproject/leat/testserver"
)

// replayOptions are the flags of leat replay.
type replayOptions struct {
	serve serve.Options
	speed float64
	step  bool
	wait  bool
}

// The bounds of --speed. An hour takes six weeks at the lowest speed, and less than 4 ms at the highest one.
const slowest, fastest = 1e-3, 1e6

func newReplay() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Serve a recording as a Kubernetes API",
		Long: `Serve a recording of leat record as a Kubernetes API, and write a kubeconfig for it. The server begins with the first
lists of the recording. Its changes follow with the recorded pauses, divided by --speed, or one at a time with --step.
After the last one the server keeps its state, until an interrupt.

Objects have their recorded UIDs and resource versions. Clients that read JSON can list and watch: kubectl get -w, leat,
client-go with JSON. They cannot write.`,
		Example: `  leat replay shop.rec --speed 10
  kubectl --kubeconfig leat.kubeconfig get pods -A -w
  leat replay shop.rec --step
  leat replay shop.rec --wait --fault 'watch pods: drop 10%'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes the file of a recording, and got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			var wrong *serve.UsageError
			if errors.As(err, &wrong) {
				return &usageError{err}
			}
			return err
		},
	}
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	o.serve.Flags(flags)
	flags.VisitAll(func(f *flag.Flag) {
		// A replay has its state from the recording, takes no writes, and serves one cluster.
		if !slices.Contains([]string{"data", "lenient", "max-clusters", "max-objects", "max-bytes"}, f.Name) {
			cmd.Flags().AddGoFlag(f)
		}
	})
	f := cmd.Flags()
	f.Float64Var(&o.speed, "speed", 1, "how many times as fast as recorded, from 0.001 to 1000000")
	f.BoolVar(&o.step, "step", false, "make one change for each line of standard input")
	f.BoolVar(&o.wait, "wait", false, "begin when the first watch is open, so that a client misses nothing")
	return cmd
}

func (o replayOptions) run(ctx context.Context, path string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch {
	case !(o.speed >= slowest && o.speed <= fastest):
		return usagef("--speed %v: it must be from %v to %.0f", o.speed, slowest, fastest)
	case o.step && (o.speed != 1 || o.wait):
		return usagef("--step excludes --speed and --wait")
	}
	if err := o.serve.Check(); err != nil {
		return err
	}
	file, err := recording.Open(path)
	if err != nil {
		return err
	}
	timeline, err := recording.Load[*unstructured.Unstructured](ctx, file.Reader, nil)
	if err != nil {
		_ = file.Close() // the other error says more
		return err
	}
	for _, note := range timeline.Notes() {
		visible.Fprintf(stderr, "leat: %s\n", note)
	}
	if err := errors.Join(incomplete(path, file), file.Close()); err != nil {
		visible.Fprintf(stderr, "leat: %s\n", oneLine(err)) // the rest can be replayed
	}
	if len(timeline.Resources()) == 0 {
		return fmt.Errorf("%s: the recording has no lists and no watches", path)
	}
	return o.replay(ctx, timeline, stdin, stdout)
}

// replay serves, and plays the changes as soon as the server runs.
func (o replayOptions) replay(ctx context.Context, timeline *recorded, stdin io.Reader, stdout io.Writer) error {
	var player *replay.Player
	serving := make(chan struct{})
	begin := sync.OnceFunc(func() { close(serving) })
	var server *testserver.Server
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return o.serve.Run(ctx, stdout, serve.Hooks{
			New: func(so testserver.Options, _ bool) (serve.Backend, error) {
				defaults := replay.Options()
				so.FirstVersion, so.ClockVersions, so.Authorize = defaults.FirstVersion, false, defaults.Authorize
				server = testserver.New(so)
				var err error
				player, err = replay.New(server, timeline)
				return serve.Backend{Server: server, Serve: func(ctx context.Context, l net.Listener) error {
					begin()
					return server.Serve(ctx, l)
				}}, err
			},
			Try:    timeline.Resources()[0].String(),
			Notice: o.notice(timeline),
		})
	})
	all.Go(func() error {
		select {
		case <-serving:
		case <-ctx.Done():
			return nil
		}
		if err := o.play(ctx, player, server, stdin, stdout); err != nil {
			return endOrError(ctx, err)
		}
		if ctx.Err() == nil {
			visible.Fprintf(stdout, "the recording has ended; the server keeps its state\n")
		}
		return nil
	})
	return all.Wait()
}

// notice says what is replayed.
func (o replayOptions) notice(timeline *recorded) string {
	changes := 0
	for _, c := range timeline.Changes() {
		if !c.Initial {
			changes++
		}
	}
	first, last := timeline.Span()
	took := time.Duration(min(float64(last.Sub(first))/o.speed, math.MaxInt64/2)) // so that it fits
	text := visible.Sprintf("replaying %v: %d objects, then %d changes in %v\n", timeline.Resources(), len(timeline.Changes())-changes, changes,
		took.Round(time.Second))
	if o.step {
		text += "press Enter for the next change\n"
	}
	return text
}

// play plays the changes.
func (o replayOptions) play(ctx context.Context, player *replay.Player, server *testserver.Server, stdin io.Reader, stdout io.Writer) error {
	if o.step {
		return o.steps(ctx, player, stdin, stdout)
	}
	for tick := time.NewTicker(50 * time.Millisecond); o.wait && len(server.Watches()) == 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return ctx.Err()
		}
	}
	return player.Run(ctx, o.speed, nil)
}

// steps plays a change for each line of standard input, and prints it. The end of the input ends the steps.
func (o replayOptions) steps(ctx context.Context, player *replay.Player, stdin io.Reader, stdout io.Writer) error {
	lines := bufio.NewReader(stdin)
	for player.Left() > 0 {
		_, err := untilInterrupted(ctx, func() (string, error) { return lines.ReadString('\n') })
		if err == io.EOF {
			visible.Fprintf(stdout, "standard input has ended; %d changes are left\n", player.Left())
			<-ctx.Done()
			return nil
		}
		if err != nil {
			return err
		}
		c, err := player.Next()
		if err != nil {
			return err
		}
		visible.Fprintf(stdout, "%s  %-8s  %s %s  version %s (%d left)\n", clock(c.Time), c.Type, c.Resource, api.FormatKey(c.Key), c.ResourceVersion, player.Left())
	}
	return nil
}
