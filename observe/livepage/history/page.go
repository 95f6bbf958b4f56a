package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/observe/recording"
)

// Options configure a Page.
type Options struct {
	// Name is the title, such as the name of the file.
	Name string
	// Page has the hosts and clients that are allowed.
	Page livepage.Options
}

// Page shows a recording. It implements http.Handler for the root of a path.
type Page struct {
	name     string
	reader   *recording.Reader
	timeline *recorded
	handler  http.Handler

	scopes  []named
	changes []change         // in the order in which the client learned of them
	objects map[object][]int // the places in changes of each object
	keys    []object         // in the order of their names
	first   int64            // microseconds since 1970, as last
	last    int64
}

type (
	recorded = recording.Timeline[*unstructured.Unstructured]

	// named is a scope under its name on the page.
	named struct {
		name string
		*recording.Scope
	}
	// change is a change with the name of its resource, and its time in microseconds, which never goes back.
	change struct {
		recording.Change[*unstructured.Unstructured]
		resource string
		at       int64
	}
	object struct {
		resource string
		key      api.Key
	}
)

// ErrEmpty is the error of a recording without a request.
var ErrEmpty = errors.New("history: the recording has no lists and no watches")

// New reads a recording. It holds all versions of the objects in memory. The error is ErrEmpty, or that of the
// context, of the reader or of Options.Page.
func New(ctx context.Context, r *recording.Reader, o Options) (*Page, error) {
	timeline, err := recording.Load[*unstructured.Unstructured](ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if len(timeline.Scopes()) == 0 {
		return nil, ErrEmpty
	}
	p := &Page{name: o.Name, reader: r, timeline: timeline, objects: map[object][]int{}}
	first, last := timeline.Span()
	p.first, p.last = first.UnixMicro(), last.UnixMicro()+1 // the last record may be between two microseconds
	p.nameScopes()
	p.sortChanges()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /recording", p.serveRecording)
	mux.HandleFunc("GET /state", p.serveState)
	mux.HandleFunc("GET /step", p.serveStep)
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("GET /object", p.serveObject)
	p.handler, err = livepage.Frame(o.Page, "recording.js", mux)
	return p, err
}

// ServeHTTP answers a request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Span returns the times between which the slider moves.
func (p *Page) Span() (first, last time.Time) { return time.UnixMicro(p.first), time.UnixMicro(p.last) }

// nameScopes gives each scope a name of its own.
func (p *Page) nameScopes() {
	taken := map[string]int{}
	for _, s := range p.timeline.Scopes() {
		name := s.Resource.String()
		if s.Namespace != "" {
			name += " in " + s.Namespace
		}
		for _, selector := range []string{s.LabelSelector, s.FieldSelector} {
			if selector != "" {
				name += ", " + selector
			}
		}
		if taken[name]++; taken[name] > 1 { // two versions of a resource
			name += fmt.Sprintf(" #%d", taken[name])
		}
		p.scopes = append(p.scopes, named{name, s})
	}
	slices.SortFunc(p.scopes, func(a, b named) int { return strings.Compare(a.name, b.name) })
}

func (p *Page) sortChanges() {
	names := map[api.Resource]string{}
	for _, r := range p.timeline.Resources() {
		name := r.String()
		for _, other := range names {
			if other == name {
				name += " " + r.Version
			}
		}
		names[r] = name
	}
	at := p.first
	for i, c := range p.timeline.Changes() {
		at = max(at, c.Time.UnixMicro())
		o := object{names[c.Resource], c.Key}
		p.changes = append(p.changes, change{c, o.resource, at})
		if p.objects[o] == nil {
			p.keys = append(p.keys, o)
		}
		p.objects[o] = append(p.objects[o], i)
	}
	slices.SortFunc(p.keys, func(a, b object) int {
		if a.resource != b.resource {
			return strings.Compare(a.resource, b.resource)
		}
		return strings.Compare(api.FormatKey(a.key), api.FormatKey(b.key))
	})
}

// until returns the number of changes up to a time.
func (p *Page) until(at int64) int {
	return sort.Search(len(p.changes), func(i int) bool { return p.changes[i].at > at })
}

// untilOf returns the number of changes of an object up to a time. places are those of p.objects.
func (p *Page) untilOf(places []int, at int64) int {
	return sort.Search(len(places), func(i int) bool { return p.changes[places[i]].at > at })
}

// moment returns the time in a request: microseconds since 1970, or the end of the recording.
func (p *Page) moment(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("at")
	if text == "" {
		return p.last, nil
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errors.New("history: at is a number of microseconds since 1970")
	}
	return min(max(at, p.first), p.last), nil
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // it fails only if the client is gone
}

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}
