package informer_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var rewrite = flag.Bool("rewrite", false, "write what the transcripts in testdata say now")

// TestTranscripts runs each file of testdata. A line that begins with "> " is a command. The lines after it say what
// every stage did until the pipeline was idle. Lines that begin with "#" are comments. Within a command, the lines of a
// stage are sorted by object if only the order for each object is promised. Only the last state of the cache is shown.
func TestTranscripts(t *testing.T) {
	files := must.Get(filepath.Glob("testdata/*.txt"))(t)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want := must.Get(os.ReadFile(file))(t)
			var got string
			synctest.Test(t, func(t *testing.T) { got = runScript(t, string(want)) })
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// runScript runs the commands of a transcript and returns it with their results.
func runScript(t *testing.T, script string) string {
	s := newScriptRun(t)
	defer s.stop()
	var out strings.Builder
	for line := range strings.Lines(script) {
		switch command, ok := strings.CutPrefix(strings.TrimSpace(line), "> "); {
		case ok:
			fmt.Fprintf(&out, "> %s\n", command)
			s.execute(strings.Fields(command))
			synctest.Wait()
			out.WriteString(s.takeOutput())
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.String()
}

// scriptRun is one run of a transcript.
type scriptRun struct {
	t        *testing.T
	started  time.Time
	server   *testserver.Server
	options  testserver.Options
	backup   *testserver.Snapshot
	informer *informer.Informer[*widget]
	wanted   informer.Options[*widget]
	handlers map[string]*scriptHandler
	ending   []func()

	mu            sync.Mutex // guards the fields below
	requests      bytes.Buffer
	changes       []keyed
	cached        string
	notifications []keyed
	notes         bytes.Buffer
}

// Write receives the lines of internal/trace about requests.
func (s *scriptRun) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.Write(p)
}

// keyed is a line about an object.
type keyed struct {
	actor string
	key   string
	line  string
}

// scriptHandler is a handler of a transcript.
type scriptHandler struct {
	registration informer.Registration
	release      chan struct{} // closed when a stuck handler goes on
}

func newScriptRun(t *testing.T) *scriptRun {
	return &scriptRun{
		t: t, started: time.Now(), handlers: map[string]*scriptHandler{},
		options: testserver.Options{FirstVersion: 10, BookmarkInterval: -1},
		wanted: informer.Options[*widget]{
			Tuning:    reflector.Tuning{Rand: func() float64 { return 0 }},
			Mutations: informer.DetectMutations(func(m cache.Mutation) { t.Errorf("an object of the cache was changed: %v", m) }),
		},
	}
}

func (s *scriptRun) elapsed() string { return fmt.Sprintf("%-8s", time.Since(s.started)) }

// open starts the server at the first command that needs it.
func (s *scriptRun) open() *testserver.Server {
	if s.server != nil {
		return s.server
	}
	s.server = testserver.New(s.options)
	s.server.Define(testserver.Definition{Resource: widgets})
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.server.Run(ctx) }()
	s.ending = append(s.ending, func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
	return s.server
}

func (s *scriptRun) make() *informer.Informer[*widget] {
	if s.informer != nil {
		return s.informer
	}
	server := s.open()
	client := must.Get(apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport}))(s.t)
	lw := trace.ListerWatcher(trace.To(s, s.elapsed), apiclient.NewPartial[*widget](client, widgets, ""))
	s.informer = informer.New(lw, s.wanted)
	s.informer.Trace(informer.Trace{Change: s.change, Batch: s.batch})
	return s.informer
}

func (s *scriptRun) change(c informer.TracedChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := c.Object.GetName()
	line := fmt.Sprintf("%s %s", c.Type, name)
	if c.FinalStateUnknown {
		line += ", final state unknown"
	}
	s.changes = append(s.changes, keyed{key: name, line: line})
}

func (s *scriptRun) batch(informer.TracedBatch) {
	snapshot := s.informer.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached = fmt.Sprintf("objects: %d, version %s", snapshot.Len(), snapshot.ResourceVersion())
}

// takeOutput returns what the stages have done since the last call.
func (s *scriptRun) takeOutput() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	line := func(stage, who, what string) { fmt.Fprintf(&out, "  %-8s%-10s %-12s %s\n", "", stage, who, what) }
	out.Write(s.requests.Bytes())
	byKey := func(a, b keyed) int { return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.key, b.key)) }
	slices.SortStableFunc(s.changes, byKey)
	slices.SortStableFunc(s.notifications, byKey)
	for _, d := range s.changes {
		line("deltafifo", widgets.Plural, d.line)
	}
	if s.cached != "" {
		line("cache", widgets.Plural, s.cached)
	}
	for _, n := range s.notifications {
		line("handler", n.actor, n.line)
	}
	out.Write(s.notes.Bytes())
	s.requests.Reset()
	s.notes.Reset()
	s.changes, s.notifications, s.cached = nil, nil, ""
	return out.String()
}

func (s *scriptRun) stop() {
	for _, a := range s.handlers {
		if a.release != nil {
			close(a.release)
		}
	}
	for _, end := range slices.Backward(s.ending) {
		end()
	}
}

// execute runs one command.
func (s *scriptRun) execute(words []string) {
	command, ok := commands[words[0]]
	require.True(s.t, ok, "there is no command %q", words[0])
	command(s, words[1:])
}

// commands are the commands of a transcript. The comment of each function shows its syntax.
var commands map[string]func(*scriptRun, []string)

func init() {
	commands = map[string]func(*scriptRun, []string){
		"server":   (*scriptRun).setServer,
		"informer": (*scriptRun).setInformer,
		"run":      (*scriptRun).run,
		"stop":     (*scriptRun).stopInformer,
		"create":   (*scriptRun).create,
		"update":   (*scriptRun).update,
		"delete":   (*scriptRun).remove,
		"pass":     (*scriptRun).pass,
		"handler":  (*scriptRun).handler,
		"release":  (*scriptRun).releaseHandler,
		"remove":   (*scriptRun).removeHandler,
		"pending":  (*scriptRun).pending,
		"fault":    (*scriptRun).fault,
		"backup":   func(s *scriptRun, _ []string) { s.backup = s.server.Snapshot() },
		"heal":     func(s *scriptRun, _ []string) { s.server.Heal() },
		"together": (*scriptRun).together,
		"status":   func(s *scriptRun, _ []string) { fmt.Fprintf(&s.notes, "  %v\n", s.informer.Status()) },
	}
}

// setServer is "server no-watch-cache no-watchlist bookmarks=1m history=3", before anything else.
func (s *scriptRun) setServer(words []string) {
	for name, value := range settings(words) {
		switch name {
		case "no-watch-cache":
			s.options.NoWatchCache = true
		case "no-watchlist":
			s.options.NoWatchList = true
		case "bookmarks":
			s.options.BookmarkInterval = s.duration(value)
		case "history":
			s.options.History = s.number(value)
		default:
			s.t.Fatalf("server has no setting %q", name)
		}
	}
}

// setInformer is "informer paged page-size=2 resync=10s selector=size=1", before the first handler and run.
func (s *scriptRun) setInformer(words []string) {
	for name, value := range settings(words) {
		switch name {
		case "paged":
			s.wanted.NoWatchList = true
		case "page-size":
			s.wanted.PageSize = int64(s.number(value))
		case "resync":
			s.wanted.ResyncPeriod = s.duration(value)
		case "selector":
			s.wanted.Selector.Labels = value
		default:
			s.t.Fatalf("informer has no setting %q", name)
		}
	}
}

func (s *scriptRun) run([]string) {
	stop := running(s.t, s.make())
	s.ending = append(s.ending, stop)
}

func (s *scriptRun) stopInformer([]string) { s.ending[len(s.ending)-1]() }

// create is "create NAME SIZE [LABEL=VALUE]".
func (s *scriptRun) create(words []string) {
	w := &widget{Size: s.number(words[1])}
	w.Namespace, w.Name, w.Labels = "default", words[0], settings(words[2:])
	must.Get(s.open().Create(widgets, w))(s.t)
}

// update is "update NAME SIZE [LABEL=VALUE]".
func (s *scriptRun) update(words []string) {
	must.Get(s.server.Edit(widgets, api.Key{Namespace: "default", Name: words[0]}, func(u *unstructured.Unstructured) {
		u.Object["size"] = int64(s.number(words[1]))
		if len(words) > 2 {
			u.SetLabels(settings(words[2:]))
		}
	}))(s.t)
}

func (s *scriptRun) remove(words []string) {
	for _, name := range words {
		require.NoError(s.t, s.server.Delete(widgets, api.Key{Namespace: "default", Name: name}))
	}
}

// together is "together create a 1 ; delete b": the informer sees both as one batch.
func (s *scriptRun) together(words []string) {
	for _, command := range strings.Split(strings.Join(words, " "), ";") {
		s.execute(strings.Fields(command))
	}
}

func (s *scriptRun) pass(words []string) { <-time.After(s.duration(words[0])) }

// handler is "handler NAME [coalesce] [stuck] [resync=10s] [panics]".
func (s *scriptRun) handler(words []string) {
	a := &scriptHandler{}
	o := informer.HandlerOptions{Name: words[0]}
	panics := false
	for name, value := range settings(words[1:]) {
		switch name {
		case "coalesce":
			o.Coalesce = true
		case "stuck":
			a.release = make(chan struct{})
		case "panics":
			panics = true
		case "resync":
			o.ResyncPeriod = s.duration(value)
		default:
			s.t.Fatalf("a handler has no setting %q", name)
		}
	}
	release := a.release
	a.registration = subscribe(s.t, s.make(), func(n api.Change[*widget]) {
		if release != nil {
			<-release
		}
		s.record(o.Name, n)
		if panics {
			panic(o.Name)
		}
	}, o)
	s.handlers[o.Name] = a
}

func (s *scriptRun) record(name string, n api.Change[*widget]) {
	var r recorder
	r.handle(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notifications = append(s.notifications, keyed{actor: name, key: n.Object.Name, line: r.lines[0]})
}

func (s *scriptRun) releaseHandler(words []string) {
	a := s.handlers[words[0]]
	close(a.release)
	a.release = nil
}

func (s *scriptRun) removeHandler(words []string) { s.handlers[words[0]].registration.Remove() }

func (s *scriptRun) pending(words []string) {
	r := s.handlers[words[0]].registration
	fmt.Fprintf(&s.notes, "  %d pending, %d panics, synced %v\n", r.Pending(), r.Panics(), runstate.IsClosed(r.Synced()))
}

// fault is "fault EFFECT [verb=watch] [skip=1] [times=1] [code=500] [after=10] [frame=ADDED]".
func (s *scriptRun) fault(words []string) {
	set := settings(words[1:])
	number := func(name string) int { return s.number(cmp.Or(set[name], "0")) }
	f := faults.Fault{Times: number("times"), Skip: number("skip")}
	if verb := set["verb"]; verb != "" {
		f.Match.Verbs = []string{verb}
	}
	if frame := set["frame"]; frame != "" {
		f.Match.Frames = []watch.EventType{watch.EventType(frame)}
	}
	switch words[0] {
	case "fail":
		f.Effect = faults.Fail{Code: number("code"), RetryAfter: time.Duration(number("retry-after")) * time.Second}
	case "disconnect":
		f.Effect = faults.Disconnect{Abrupt: set["abrupt"] != ""}
	case "compact":
		f.Effect = faults.Compact{}
	case "outage":
		f.Effect = faults.Outage{}
	case "drop":
		f.Effect = faults.Drop{}
	case "duplicate":
		f.Effect = faults.Duplicate{}
	case "hold":
		f.Effect = faults.Hold{Frames: number("frames")}
	case "malform":
		f.Effect = faults.Malform{Mangle: func(object []byte) []byte {
			return bytes.Replace(object, []byte(`"size":`), []byte(`"size":"large","was":`), 1)
		}}
	case "cut":
		f.Effect = faults.Cut{After: number("after"), Abrupt: true}
	case "short-watch":
		f.Effect = faults.ShortWatch{}
	case "restore":
		f.Effect = faults.Restore{To: s.backup}
	default:
		s.t.Fatalf("there is no fault %q", words[0])
	}
	s.open().Inject(f)
}

// settings reads words of the form name or name=value.
func settings(words []string) map[string]string {
	set := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			value = "true"
		}
		set[name] = value
	}
	return set
}

func (s *scriptRun) number(word string) int {
	n := must.Get(strconv.Atoi(word))(s.t)
	return n
}

func (s *scriptRun) duration(word string) time.Duration {
	d := must.Get(time.ParseDuration(word))(s.t)
	return d
}
