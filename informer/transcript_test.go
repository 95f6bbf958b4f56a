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

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/testserver"
)

var rewrite = flag.Bool("rewrite", false, "write what the transcripts in testdata say now")

// TestTranscripts plays each file of testdata: a line that begins with "> " is a command, and what follows is what every
// stage did until all was quiet again. Lines that begin with "#" are for readers. Within a command, lines of a stage are
// sorted by object where only the order for each object is promised, and of the cache the last one stands.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(want)) })
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// play carries out the commands of a transcript, and returns it with what they led to.
func play(t *testing.T, script string) string {
	s := newStage(t)
	defer s.stop()
	var out strings.Builder
	for line := range strings.Lines(script) {
		switch command, ok := strings.CutPrefix(strings.TrimSpace(line), "> "); {
		case ok:
			fmt.Fprintf(&out, "> %s\n", command)
			s.do(strings.Fields(command))
			synctest.Wait()
			out.WriteString(s.heard())
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.String()
}

// stage is what a transcript plays on.
type stage struct {
	t        *testing.T
	started  time.Time
	server   *testserver.Server
	options  testserver.Options
	backup   *testserver.Snapshot
	informer *informer.Informer[*widget]
	wanted   informer.Options[*widget]
	handlers map[string]*actor
	ending   []func()

	mu       sync.Mutex // guards the fields below
	requests bytes.Buffer
	deltas   []keyed
	cached   string
	told     []keyed
	notes    bytes.Buffer
}

// Write takes what the client's side has to say.
func (s *stage) Write(p []byte) (int, error) {
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

// actor is a handler of a transcript.
type actor struct {
	registration informer.Registration
	release      chan struct{} // closed when a stuck handler goes on
}

func newStage(t *testing.T) *stage {
	return &stage{
		t: t, started: time.Now(), handlers: map[string]*actor{},
		options: testserver.Options{FirstVersion: 10, BookmarkInterval: -1},
		wanted: informer.Options[*widget]{
			Rand:       func() float64 { return 0 },
			OnMutation: func(m cache.Mutation) { t.Errorf("somebody changed an object of the cache: %v", m) },
		},
	}
}

func (s *stage) elapsed() string { return fmt.Sprintf("%-8s", time.Since(s.started)) }

// open starts the server at the first command that needs it.
func (s *stage) open() *testserver.Server {
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

func (s *stage) make() *informer.Informer[*widget] {
	if s.informer != nil {
		return s.informer
	}
	server := s.open()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(s.t, err)
	s.wanted.OnBatch = s.batch
	lw := trace.ListerWatcher(trace.To(s, s.elapsed), apiclient.NewPartial[*widget](client, widgets, ""))
	s.informer = informer.New(lw, s.wanted)
	return s.informer
}

func (s *stage) batch(b deltafifo.Batch[*widget], snapshot *cache.Snapshot[*widget]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range b.Objects {
		for _, d := range o.Deltas {
			line := fmt.Sprintf("%s %s", d.Type, o.Key.Name)
			if d.FinalStateUnknown {
				line += ", final state unknown"
			}
			s.deltas = append(s.deltas, keyed{key: o.Key.Name, line: line})
		}
	}
	s.cached = fmt.Sprintf("objects: %d, version %s", snapshot.Len(), snapshot.ResourceVersion())
}

// heard returns, and forgets, what the stages have done.
func (s *stage) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	line := func(stage, who, what string) { fmt.Fprintf(&out, "  %-8s%-10s %-12s %s\n", "", stage, who, what) }
	out.Write(s.requests.Bytes())
	byKey := func(a, b keyed) int { return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.key, b.key)) }
	slices.SortStableFunc(s.deltas, byKey)
	slices.SortStableFunc(s.told, byKey)
	for _, d := range s.deltas {
		line("deltafifo", widgets.Plural, d.line)
	}
	if s.cached != "" {
		line("cache", widgets.Plural, s.cached)
	}
	for _, n := range s.told {
		line("handler", n.actor, n.line)
	}
	out.Write(s.notes.Bytes())
	s.requests.Reset()
	s.notes.Reset()
	s.deltas, s.told, s.cached = nil, nil, ""
	return out.String()
}

func (s *stage) stop() {
	for _, a := range s.handlers {
		if a.release != nil {
			close(a.release)
		}
	}
	for _, end := range slices.Backward(s.ending) {
		end()
	}
}

// do carries out one command.
func (s *stage) do(words []string) {
	command, ok := commands[words[0]]
	require.True(s.t, ok, "there is no command %q", words[0])
	command(s, words[1:])
}

// commands are what a transcript can say; each is described where it is defined.
var commands map[string]func(*stage, []string)

func init() {
	commands = map[string]func(*stage, []string){
		"server":   (*stage).setServer,
		"informer": (*stage).setInformer,
		"run":      (*stage).run,
		"stop":     (*stage).stopInformer,
		"create":   (*stage).create,
		"update":   (*stage).update,
		"delete":   (*stage).remove,
		"pass":     (*stage).pass,
		"handler":  (*stage).handler,
		"release":  (*stage).releaseHandler,
		"remove":   (*stage).removeHandler,
		"pending":  (*stage).pending,
		"fault":    (*stage).fault,
		"backup":   func(s *stage, _ []string) { s.backup = s.server.Snapshot() },
		"heal":     func(s *stage, _ []string) { s.server.Heal() },
		"together": (*stage).together,
		"status":   func(s *stage, _ []string) { fmt.Fprintf(&s.notes, "  %v\n", s.informer.Status()) },
	}
}

// setServer is "server no-watch-cache no-streaming bookmarks=1m history=3", before anything else.
func (s *stage) setServer(words []string) {
	for name, value := range settings(words) {
		switch name {
		case "no-watch-cache":
			s.options.NoWatchCache = true
		case "no-streaming":
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
func (s *stage) setInformer(words []string) {
	for name, value := range settings(words) {
		switch name {
		case "paged":
			s.wanted.DisableStreaming = true
		case "page-size":
			s.wanted.PageSize = int64(s.number(value))
		case "resync":
			s.wanted.ResyncPeriod = s.duration(value)
		case "selector":
			s.wanted.LabelSelector = value
		default:
			s.t.Fatalf("informer has no setting %q", name)
		}
	}
}

func (s *stage) run([]string) {
	stop := running(s.t, s.make())
	s.ending = append(s.ending, stop)
}

func (s *stage) stopInformer([]string) { s.ending[len(s.ending)-1]() }

// create is "create NAME SIZE [LABEL=VALUE]".
func (s *stage) create(words []string) {
	w := &widget{Size: s.number(words[1])}
	w.Namespace, w.Name, w.Labels = "default", words[0], settings(words[2:])
	_, err := s.open().Create(widgets, w)
	require.NoError(s.t, err)
}

// update is "update NAME SIZE [LABEL=VALUE]".
func (s *stage) update(words []string) {
	_, err := s.server.Edit(widgets, api.Key{Namespace: "default", Name: words[0]}, func(u *unstructured.Unstructured) {
		u.Object["size"] = int64(s.number(words[1]))
		if len(words) > 2 {
			u.SetLabels(settings(words[2:]))
		}
	})
	require.NoError(s.t, err)
}

func (s *stage) remove(words []string) {
	for _, name := range words {
		require.NoError(s.t, s.server.Delete(widgets, api.Key{Namespace: "default", Name: name}))
	}
}

// together is "together create a 1 ; delete b": nothing may look in between.
func (s *stage) together(words []string) {
	for _, command := range strings.Split(strings.Join(words, " "), ";") {
		s.do(strings.Fields(command))
	}
}

func (s *stage) pass(words []string) { <-time.After(s.duration(words[0])) }

// handler is "handler NAME [coalesce] [stuck] [resync=10s] [panics]".
func (s *stage) handler(words []string) {
	a := &actor{}
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
	a.registration = subscribe(s.t, s.make(), func(n informer.Notification[*widget]) {
		if release != nil {
			<-release
		}
		s.tell(o.Name, n)
		if panics {
			panic(o.Name)
		}
	}, o)
	s.handlers[o.Name] = a
}

func (s *stage) tell(name string, n informer.Notification[*widget]) {
	var r recorder
	r.handle(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, keyed{actor: name, key: n.Object.Name, line: r.lines[0]})
}

func (s *stage) releaseHandler(words []string) {
	a := s.handlers[words[0]]
	close(a.release)
	a.release = nil
}

func (s *stage) removeHandler(words []string) { s.handlers[words[0]].registration.Remove() }

func (s *stage) pending(words []string) {
	r := s.handlers[words[0]].registration
	fmt.Fprintf(&s.notes, "  %d pending, %d panics, synced %v\n", r.Pending(), r.Panics(), isClosed(r.Synced()))
}

// fault is "fault EFFECT [verb=watch] [skip=1] [times=1] [code=500] [after=10] [frame=ADDED]".
func (s *stage) fault(words []string) {
	set := settings(words[1:])
	number := func(name string) int { return s.number(cmp.Or(set[name], "0")) }
	f := testserver.Fault{Times: number("times"), Skip: number("skip")}
	if verb := set["verb"]; verb != "" {
		f.Match.Verbs = []string{verb}
	}
	if frame := set["frame"]; frame != "" {
		f.Match.Frames = []testserver.FrameType{testserver.FrameType(frame)}
	}
	switch words[0] {
	case "fail":
		f.Effect = testserver.Fail{Code: number("code"), RetryAfter: time.Duration(number("retry-after")) * time.Second}
	case "disconnect":
		f.Effect = testserver.Disconnect{Abrupt: set["abrupt"] != ""}
	case "compact":
		f.Effect = testserver.Compact{}
	case "outage":
		f.Effect = testserver.Outage{}
	case "drop":
		f.Effect = testserver.DropEvent{}
	case "duplicate":
		f.Effect = testserver.DuplicateEvent{}
	case "hold":
		f.Effect = testserver.HoldEvent{Frames: number("frames")}
	case "malform":
		f.Effect = testserver.Malform{Mangle: func(object []byte) []byte {
			return bytes.Replace(object, []byte(`"size":`), []byte(`"size":"large","was":`), 1)
		}}
	case "cut":
		f.Effect = testserver.Cut{After: number("after"), Abrupt: true}
	case "short-watch":
		f.Effect = testserver.ShortWatch{}
	case "restore":
		f.Effect = testserver.Restore{To: s.backup}
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

func (s *stage) number(word string) int {
	n, err := strconv.Atoi(word)
	require.NoError(s.t, err)
	return n
}

func (s *stage) duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	require.NoError(s.t, err)
	return d
}
