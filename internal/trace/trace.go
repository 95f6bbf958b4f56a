package trace

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// Printer writes one line for each step of a stage. It is safe for concurrent use; a nil Printer is silent.
type Printer struct {
	prefix func() string

	mu sync.Mutex // guards the field below
	w  io.Writer
}

// To returns a printer that writes to w. prefix, if not nil, returns the text before each line, for instance the time.
func To(w io.Writer, prefix func() string) *Printer { return &Printer{w: w, prefix: prefix} }

// Line writes a line about a stage and a resource.
func (p *Printer) Line(stage, resource, format string, args ...any) {
	if p == nil {
		return
	}
	prefix := ""
	if p.prefix != nil {
		prefix = p.prefix()
	}
	p.Printf("  %s%-10s %-12s %s\n", prefix, stage, resource, fmt.Sprintf(format, args...))
}

// Printf writes text between the lines.
func (p *Printer) Printf(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format, args...)
}

// ListerWatcher returns lw with tracing of its requests and answers.
func ListerWatcher[T api.Object](p *Printer, lw api.ListerWatcher[T]) api.ListerWatcher[T] {
	return traced[T]{api.Wrapper[T]{ListerWatcher: lw}, p}
}

type traced[T api.Object] struct {
	api.Wrapper[T]
	printer *Printer
}

func (t traced[T]) line(format string, args ...any) {
	t.printer.Line("apiclient", t.Collection().Resource.Plural, format, args...)
}

func (t traced[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	t.line("list %s", describe(o.ListOptions))
	items := 0
	meta, err := t.ListerWatcher.List(ctx, o, func(object T) error {
		items++
		return each(object)
	})
	switch {
	case ctx.Err() != nil: // the caller has ended the list, so its error does not matter
	case err != nil:
		t.line("the list failed: %v", err)
	default:
		t.line("%s, version %s", count(items, "object"), meta.ResourceVersion)
	}
	return meta, err
}

func (t traced[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) {
		t.line("watch %s", describe(o.ListOptions))
		for event, err := range t.ListerWatcher.Watch(ctx, o) {
			t.event(ctx, event, err)
			if !yield(event, err) {
				return
			}
		}
	}
}

func (t traced[T]) event(ctx context.Context, e api.Event[T], err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		t.line("the watch failed: %v", err)
	case e.InitialEventsEnd:
		t.line("BOOKMARK version %s: the initial state is complete", e.ResourceVersion)
	case e.Type == watch.Bookmark:
		t.line("BOOKMARK version %s", e.ResourceVersion)
	default:
		t.line("%s %s version %s", e.Type, api.FormatKey(api.KeyOf(e.Object)), e.ResourceVersion)
	}
}

// describe returns the parameters of a request that not every request has.
func describe(o metav1.ListOptions) string {
	var b strings.Builder
	switch {
	case o.Continue != "":
		b.WriteString("the next page")
	case o.SendInitialEvents != nil && *o.SendInitialEvents:
		b.WriteString("with the initial state")
		if o.ResourceVersion != "" {
			fmt.Fprintf(&b, ", not older than version %s", o.ResourceVersion)
		}
	case o.ResourceVersion == "":
		b.WriteString("the newest version")
	case o.ResourceVersion == "0":
		b.WriteString("any version")
	default:
		fmt.Fprintf(&b, "from version %s", o.ResourceVersion)
	}
	if o.Limit > 0 {
		fmt.Fprintf(&b, ", at most %d", o.Limit)
	}
	return b.String()
}

// describeChanges returns the objects of a batch with their changes. Those of one object are in a row.
func describeChanges(changes []informer.TracedChange, objects int) string {
	const most = 4
	var parts []string
	for len(changes) > 0 && len(parts) < most {
		key := api.KeyOf(changes[0].Object)
		var kinds []string
		for len(changes) > 0 && api.KeyOf(changes[0].Object) == key {
			kind := changes[0].Type.String()
			if changes[0].FinalStateUnknown {
				kind += " (final state unknown)"
			}
			kinds, changes = append(kinds, kind), changes[1:]
		}
		parts = append(parts, fmt.Sprintf("%s [%s]", api.FormatKey(key), strings.Join(kinds, ", ")))
	}
	if more := objects - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func notification[T api.Object](n api.Change[T]) string {
	s := fmt.Sprintf("%s %s version %s", n.Type, api.FormatKey(api.KeyOf(n.Object)), n.Object.GetResourceVersion())
	switch {
	case n.InitialList:
		s += ", of the initial list"
	case n.Resync:
		s += ", a resync"
	case n.Type == api.Updated:
		s += fmt.Sprintf(", was %s", n.Old.GetResourceVersion())
	case n.FinalStateUnknown:
		s += ", final state unknown"
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
