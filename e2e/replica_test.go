package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
)

// The times of the replicas' election, less than half of the defaults to keep the test short.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = time.Second
)

const (
	leaseName = "mill"
	seedLabel = "seed"
	beatLabel = "beat"
	seeds     = 100                    // objects in the cache of a replica
	beatPause = 200 * time.Millisecond // between two writes of the leader
)

// replicaVariable makes the test binary run as a replica. Its value is a replicaConfig in JSON.
const replicaVariable = "LEAT_E2E_REPLICA"

type replicaConfig struct {
	Host, Token, Namespace, Identity string
	CA                               []byte
}

// beat is a write of a leader: its name, the number of the write, the number of objects in its cache before its
// election, and whether it writes after its context ended. A process leads once, so its name identifies its term.
type beat struct {
	Writer         string
	Number, Cached int
	Last           bool
}

// runReplica is the main function of a replica. It returns the exit code.
func runReplica(encoded string) int { return runProcess(encoded, replicaConfig.run) }

// runProcess runs until a signal, or until the test ends. It returns the exit code.
func runProcess(encoded string, run func(replicaConfig, context.Context) error) int {
	var c replicaConfig
	err := json.Unmarshal([]byte(encoded), &c)
	if err == nil {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(2) // the test has ended
		}()
		err = manager.UntilSignal(context.Background(), func(ctx context.Context) error {
			fmt.Println("it handles signals")
			return run(c, ctx)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c replicaConfig) run(ctx context.Context) error {
	client, err := apiclient.New(apiclient.Config{Host: c.Host, BearerToken: apiclient.NewSecret(c.Token), TLS: apiclient.TLS{CAData: c.CA}})
	if err != nil {
		return err
	}
	maps := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, c.Namespace)
	cached := informer.New(maps, informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: seedLabel}})
	w := &writer{maps: maps, beat: beat{Writer: c.Identity}, namespace: c.Namespace}
	w.elector, err = leaderelection.New(client, leaderelection.Options{
		Namespace: c.Namespace, Name: leaseName, Identity: c.Identity,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		OnLeading: func(leading bool) {
			if leading { // before the leading function is called
				w.beat.Cached = cached.Cache().Len()
			}
		},
	})
	if err != nil {
		return err
	}
	m, err := manager.New(manager.Options{Elector: w.elector})
	if err != nil {
		return err
	}
	ctl := controller.New("writer", w, controller.Options{})
	ctl.Watch(controller.For(cached).When(func(n api.Change[*corev1.ConfigMap]) bool {
		return n.Object.Name == objectName(0)
	}))
	if err := m.Add(cached, ctl); err != nil {
		return err
	}
	return m.Run(ctx)
}

// writer reconciles one object forever: it writes beats, each as a new object, which the server accepts from every
// client.
type writer struct {
	elector   *leaderelection.Elector
	maps      *apiclient.TypedClient[*corev1.ConfigMap]
	namespace string
	beat      beat // the next one, except for its number
}

func (w *writer) Reconcile(ctx context.Context, _ api.Key) (controller.Result, error) {
	if err := w.write(ctx); err != nil {
		return controller.Result{}, err
	}
	pause := time.NewTimer(beatPause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return controller.Result{RequeueAfter: 1}, nil
	case <-ctx.Done(): // write one more after the end of the context
		w.beat.Last = true
		return controller.Result{}, w.write(context.WithoutCancel(ctx))
	}
}

func (w *writer) write(ctx context.Context) error {
	if !w.elector.Leading() {
		return errors.New("not the leader any more")
	}
	w.beat.Number++
	b, err := json.Marshal(w.beat)
	if err != nil {
		return err
	}
	_, err = w.maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: w.beat.Writer + "-" + strconv.Itoa(w.beat.Number), Labels: labelSet{beatLabel: "yes"},
		},
		Data: map[string]string{"beat": string(b)},
	}, metav1.CreateOptions{})
	return err
}

// replica is a process that campaigns.
type replica struct {
	identity string
	process  *os.Process
	stderr   *bytes.Buffer // may be read when it has ended
	ended    chan error
}

// startReplica starts a replica. It is killed when the test ends.
func startReplica(t *testing.T, namespace, identity string) *replica {
	t.Helper()
	return startProcess(t, replicaVariable, namespace, identity)
}

// startProcess starts the test binary with a replicaConfig in a variable, and returns when the process handles signals.
// It is killed when the test ends.
func startProcess(t *testing.T, variable, namespace, identity string) *replica {
	t.Helper()
	config := must.Get(json.Marshal(replicaConfig{
		Host: server.URL(), Token: cluster.AdminToken, CA: server.CA(), Namespace: namespace, Identity: identity,
	}))(t)
	r := &replica{identity: identity, stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(config))
	cmd.Stderr = r.stderr
	must.Get(cmd.StdinPipe())(t) // the pipe closes with this process
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	r.process = cmd.Process
	_, _ = out.Read(make([]byte, 1)) // an error means that it has failed, which its end shows
	go func() { r.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.process.Kill() // if it has not ended
		<-r.ended
	})
	return r
}

// end returns the exit code and the standard error of a process that must end soon.
func (r *replica) end(t *testing.T) (code int, said string) {
	t.Helper()
	var err error
	select {
	case err = <-r.ended:
	case <-time.After(patience):
		require.Fail(t, "the replica does not end", r.identity)
	}
	r.ended <- err // for the clean-up
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), r.stderr.String()
	}
	require.NoError(t, err)
	return 0, r.stderr.String()
}
