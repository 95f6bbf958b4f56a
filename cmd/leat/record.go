package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/reflector"
)

// recordOptions are the flags of leat record.
type recordOptions struct {
	server kubeconfig.Options
	selection
	output string
	force  bool
	redact []string
	during time.Duration
}

func newRecord() *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record RESOURCE[,RESOURCE...] -o FILE",
		Short: "Record what a server sends about resources, to a file",
		Long: `Record the lists and watches of resources to a file, until an interrupt. leat show prints what the file has, and leat
replay serves it.

Credentials are never written. The values of Secrets are replaced by hashes before they reach the disk, except for the
identity, the type, labels, owners, times and a few more plain fields. So are the fields of --redact. Equal values have
equal hashes within a file. At the end, leat record names each --redact that matched nothing, because its path may be
wrong. Everything else is written as it is: a file tells whoever has it what the cluster runs.

What was received half a second ago is in the file, also if the process is killed.`,
		Example: `  leat record pods,deploy -A -o shop.rec
  leat record pods configmaps -n shop -o shop.rec --redact configmaps:data --redact pods:spec.containers.env.value
  leat record certificates.cert-manager.io -A -o certs.rec --for 10m`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s needs a resource, such as pods,deployments", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), strings.Split(strings.Join(args, ","), ","), cmd.ErrOrStderr())
		},
	}
	connectFlags(cmd, &o.server)
	o.addFlags(cmd, "record")
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "file to write")
	f.BoolVar(&o.force, "force", false, "overwrite the file if it exists")
	f.StringArrayVar(&o.redact, "redact", nil, "RESOURCE:PATH of values to replace by hashes, such as configmaps:data; may be repeated")
	f.DurationVar(&o.during, "for", 0, "end after this time (default: at an interrupt)")
	return cmd
}

func (o recordOptions) validate() ([]recording.Redaction, error) {
	switch {
	case o.output == "":
		return nil, usagef("leat record needs a file: -o FILE")
	case o.during < 0:
		return nil, usagef("--for %v is negative", o.during)
	}
	if err := o.check(o.server.Namespace); err != nil {
		return nil, err
	}
	var all []recording.Redaction
	for _, text := range o.redact {
		resource, path, ok := strings.Cut(text, ":")
		if !ok {
			return nil, usagef("--redact %q: write it as RESOURCE:PATH, such as configmaps:data", text)
		}
		all = append(all, recording.Redaction{Resource: resource, Path: path})
	}
	return all, nil
}

func (o recordOptions) run(ctx context.Context, names []string, stderr io.Writer) (err error) {
	redact, err := o.validate()
	if err != nil {
		return err
	}
	r := &recordJob{recordOptions: o, stderr: stderr}
	if r.Recorder, err = recording.New(&r.file, recording.Options{Redact: redact, JSON: true, Wait: true}); err != nil {
		return usagef("--redact: %w", err)
	}
	client, namespace, err := connectWith(ctx, o.server, func(cfg *apiclient.Config) { cfg.WrapTransport = r.Wrap })
	if err != nil {
		return endOrError(ctx, err)
	}
	defer client.CloseIdleConnections()
	resources, err := lookupAll(ctx, client, names, redact)
	if err != nil {
		return endOrError(ctx, err)
	}
	if err := r.file.create(o.output, o.force); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	return r.record(ctx, client, resources, namespace)
}

// lateFile is a file that is created after the first write, when nothing else can fail any more.
type lateFile struct {
	*os.File
	head []byte
}

func (f *lateFile) Write(p []byte) (int, error) {
	if f.File == nil {
		f.head = append(f.head, p...)
		return len(p), nil
	}
	return f.File.Write(p)
}

// create creates the file, and writes what was written before. The file may contain what only this user may read.
func (f *lateFile) create(path string, force bool) (err error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists; --force overwrites it", path)
	}
	if err != nil {
		return err
	}
	f.File = file
	if err = empty(file); err == nil {
		_, err = file.Write(f.head)
	}
	if err != nil {
		_ = file.Close() // the other error says more
	}
	return err
}

// empty removes the content of a file, and lets only its user read it from now on. A pipe or a device stays as it is.
func empty(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Mode().Perm()&^0o600 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return fmt.Errorf("only its user may read a recording, and the mode of the file cannot be changed; remove it first: %w", err)
		}
	}
	return file.Truncate(0)
}

// lookupAll finds the resources, once each. A redaction names a resource that is recorded, in any case.
func lookupAll(ctx context.Context, client *apiclient.Client, names []string, redact []recording.Redaction) (all []api.Resource, err error) {
	known := map[string]bool{}
	for _, name := range names {
		if name == "" {
			return nil, usagef("there is a comma without a resource")
		}
		r, err := discovery.Lookup(ctx, client, name)
		if err != nil {
			return nil, err
		}
		if !known[r.String()] {
			all = append(all, r)
		}
		known[r.String()] = true
	}
	for _, r := range redact {
		recorded := func(a api.Resource) bool {
			return strings.EqualFold(a.Plural, r.Resource) || strings.EqualFold(a.String(), r.Resource)
		}
		if r.Resource != "*" && !slices.ContainsFunc(all, recorded) {
			return nil, usagef("--redact %s:%s: the recorded resources are %v", r.Resource, r.Path, all)
		}
	}
	return all, nil
}

// recordJob is a running recording.
type recordJob struct {
	recordOptions
	stderr io.Writer
	file   lateFile
	*recording.Recorder
}

// recordedObject is what the informers of leat record decode. It has more than metadata, so that servers send whole
// objects.
type recordedObject struct {
	Metadata struct {
		Namespace       string    `json:"namespace"`
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct{} `json:"status"`
}

func (o *recordedObject) GetNamespace() string       { return o.Metadata.Namespace }
func (o *recordedObject) GetName() string            { return o.Metadata.Name }
func (o *recordedObject) GetUID() types.UID          { return o.Metadata.UID }
func (o *recordedObject) GetResourceVersion() string { return o.Metadata.ResourceVersion }

// record runs the informers and the recorder until ctx ends. The informers end first, so that the file has the end of
// their watches.
func (r *recordJob) record(ctx context.Context, client *apiclient.Client, resources []api.Resource, namespace string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	written := make(chan error, 1)
	go func() {
		err := r.Run(writing)
		cancel(err)
		written <- err
	}()
	if r.during > 0 {
		defer time.AfterFunc(r.during, func() { cancel(nil) }).Stop()
	}
	var all errgroup.Group
	informers := make([]*informer.Informer[*recordedObject], len(resources))
	for i, resource := range resources {
		informers[i] = r.follow(client, resource, r.namespaceOf(resource, namespace), cancel)
		all.Go(func() error { return informers[i].Run(ctx) })
	}
	ended := r.progress(ctx, informers)
	err := all.Wait()
	cancel(nil)
	<-ended
	stop()
	if failed := <-written; failed != nil {
		return failed
	}
	visible.Fprintf(r.stderr, "leat: wrote %s: %s\n", r.output, r.summary(informers))
	for i, n := range r.Stats().Redacted {
		if n == 0 {
			visible.Fprintf(r.stderr, "leat: --redact %s matched nothing; check the path before you share the file\n", r.redact[i])
		}
	}
	if err != nil {
		return err
	}
	return endOrError(ctx, context.Cause(ctx))
}

// follow makes the informer of a resource. It keeps the recorded stream going as it does in an agent.
func (r *recordJob) follow(client *apiclient.Client, resource api.Resource, namespace string, cancel context.CancelCauseFunc) *informer.Informer[*recordedObject] {
	var i *informer.Informer[*recordedObject]
	i = informer.New(apiclient.NewPartial[*recordedObject](client, resource, namespace), informer.Options[*recordedObject]{
		Selector: r.selector(), Memory: reflector.Memory{KeepManagedFields: true},
		Hooks: reflector.Hooks{OnError: func(err error) { endOrTell(cancel, r.stderr, i.Status(), err) }},
	})
	return i
}

// recordProgress is the time between two lines of progress. Tests shorten it.
var recordProgress = 5 * time.Second

// progress prints a line when all resources are listed, and then when something has changed. It returns a channel that
// closes after the last line.
func (r *recordJob) progress(ctx context.Context, informers []*informer.Informer[*recordedObject]) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, i := range informers {
			select {
			case <-i.Synced():
			case <-ctx.Done():
				return
			}
		}
		last := ""
		tick := time.NewTicker(recordProgress)
		defer tick.Stop()
		for {
			if text := r.summary(informers); text != last {
				last = text
				visible.Fprintf(r.stderr, "leat: recording %s\n", text)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ended
}

func (r *recordJob) summary(informers []*informer.Informer[*recordedObject]) string {
	var parts []string
	for _, i := range informers {
		parts = append(parts, fmt.Sprintf("%d %s", i.Snapshot().Len(), i.Resource()))
	}
	s := r.Stats()
	text := fmt.Sprintf("%s; %d events, %s received, %s written", strings.Join(parts, ", "), s.Events, size(s.Bytes), size(s.Written))
	if s.Lost > 0 {
		text += fmt.Sprintf("; %d answers are not complete", s.Lost)
	}
	return text
}

// size formats a number of bytes.
func size(n uint64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}
