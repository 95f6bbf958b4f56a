//go:build linux && !race

package warmstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/explore"
)

// leaf is an object of the world. Its content is its version.
type leaf struct {
	Metadata struct {
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
}

func (*leaf) GetNamespace() string         { return "" }
func (l *leaf) GetName() string            { return l.Metadata.Name }
func (l *leaf) GetUID() types.UID          { return l.Metadata.UID }
func (l *leaf) GetResourceVersion() string { return l.Metadata.ResourceVersion }

// leaves are the versions of the objects a and b. Zero means that the object does not exist.
type leaves [2]int

func (l leaves) String() string {
	return strings.ReplaceAll(fmt.Sprintf("a of %d, b of %d", l[0], l[1]), "of 0", "missing")
}

const mostVersions = 6

// place is a folder for one run, with a codec.
type workplace struct {
	path  string
	codec *codec.Codec[*leaf]
}

// disk is the content of the files, as the kernel keeps it after the end of a process. Nil means no file.
type disk struct{ file, next []byte }

// agent is a server, and processes that follow each other. Each has a real ListerWatcher.
type agent struct {
	*workplace
	at       *workplace
	history  []leaves // the state after each version; the version 0 is unused
	w        *ListerWatcher[*leaf]
	lag      int                  // a list is by so many versions too old
	hook     func(n int) error    // called in a list of the server after each object
	asked    bool                 // the last list came from the server
	next     func() (event, bool) // of the open watch; nil without one
	stop     func()
	shown    leaves // by the informer of the process
	version  int
	variant  fileVariant
	wrong    error
	pretends bool // the next event is a bookmark
}

type event struct {
	api.Event[*leaf]
	err error
}

// fileVariant is a rule that a test breaks, outside of the package.
type fileVariant int

const (
	_            fileVariant = iota
	showsFirst               // the informer sees an event before it is written
	skipsDeletes             // a deletion is not written
	marksAhead               // a bookmark comes before the events up to it
)

func (a *agent) fail(format string, args ...any) {
	if a.wrong == nil {
		a.wrong = fmt.Errorf(format, args...)
	}
}

func (a *agent) newest() int { return len(a.history) - 1 }

func (a *agent) write(name, version int) {
	state := a.history[a.newest()]
	state[name] = version
	a.history = append(a.history, state)
}

func leafOf(name, version int) *leaf {
	l := &leaf{}
	l.Metadata.Name, l.Metadata.UID, l.Metadata.ResourceVersion = string('a'+rune(name)), "u", strconv.Itoa(version)
	return l
}

func (a *agent) Codec() *codec.Codec[*leaf] { return a.codec }

func (a *agent) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Kind: "Leaf", Plural: "leaves"}}
}

func (a *agent) List(_ context.Context, _ api.Options[*leaf], each func(*leaf) error) (metav1.ListMeta, error) {
	a.asked = true
	version := a.newest() - a.lag
	n := 0
	for name, v := range a.history[version] {
		if v == 0 {
			continue
		}
		if err := each(leafOf(name, v)); err != nil {
			return metav1.ListMeta{}, err
		}
		if n++; a.hook != nil {
			if err := a.hook(n); err != nil {
				return metav1.ListMeta{}, err
			}
		}
	}
	return metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}, nil
}

// Watch sends the next event at each pull, and a bookmark after the last event.
func (a *agent) Watch(_ context.Context, o api.Options[*leaf]) iter.Seq2[api.Event[*leaf], error] {
	return func(yield func(api.Event[*leaf], error) bool) {
		if o.SendInitialEvents != nil {
			a.asked = true
			for name, v := range a.history[a.newest()] {
				if v > 0 && !yield(api.Event[*leaf]{Type: watch.Added, Object: leafOf(name, v), ResourceVersion: strconv.Itoa(v)}, nil) {
					return
				}
			}
			yield(api.Event[*leaf]{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(a.newest()), InitialEventsEnd: true}, nil)
			return
		}
		at, _ := strconv.Atoi(o.ResourceVersion)
		for {
			e := api.Event[*leaf]{Type: watch.Bookmark, ResourceVersion: strconv.Itoa(at)}
			if at < a.newest() && !(a.variant == marksAhead && a.pretends) {
				e = a.event(at + 1)
				at++
			} else {
				e.ResourceVersion = strconv.Itoa(a.newest())
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (a *agent) event(version int) api.Event[*leaf] {
	before, after := a.history[version-1], a.history[version]
	for name := range after {
		e := api.Event[*leaf]{Type: watch.Modified, Object: leafOf(name, version), ResourceVersion: strconv.Itoa(version)}
		switch {
		case before[name] == after[name]:
			continue
		case after[name] == 0 && a.variant == skipsDeletes:
			e.Type, e.Object = watch.Bookmark, nil
		case after[name] == 0:
			e.Type = watch.Deleted
		}
		return e
	}
	panic("a version without a change")
}

// boot starts a process, and its informer lists.
func (a *agent) boot(floor int) {
	w, err := New[*leaf](a, Options{Path: a.path, Cluster: "test"})
	if err != nil {
		a.fail("New: %v", err)
		return
	}
	a.w = w
	w.workers, w.boot = 1, "boot"
	a.list(true)
	if !a.asked && a.version < floor {
		a.fail("the process shows version %d, and the one before it had shown version %d", a.version, floor)
	}
	if a.shown != a.history[a.version] {
		a.fail("the process shows %v at version %d, and the server had %v", a.shown, a.version, a.history[a.version])
	}
}

// list lists as an informer does. Without accept, the informer refuses the list.
func (a *agent) list(accept bool) (err error) {
	a.endWatch()
	a.asked = false
	var got leaves
	meta, err := a.w.List(context.Background(), api.Options[*leaf]{}, func(l *leaf) error {
		got[l.Metadata.Name[0]-'a'], err = strconv.Atoi(l.Metadata.ResourceVersion)
		return err
	})
	if err == nil && accept {
		a.shown = got
		a.version, err = strconv.Atoi(meta.ResourceVersion)
	}
	return err
}

// watchList lists in a watch. The first one of a process whose file is good is answered by its list.
func (a *agent) watchList() {
	a.endWatch()
	yes := true
	var got leaves
	for e, err := range a.w.Watch(context.Background(), api.Options[*leaf]{ListOptions: metav1.ListOptions{SendInitialEvents: &yes}}) {
		if err != nil {
			a.fail("the WatchList fails: %v", err)
			return
		}
		if e.Object != nil {
			got[e.Object.Metadata.Name[0]-'a'], _ = strconv.Atoi(e.ResourceVersion)
		}
	}
	a.shown, a.version = got, a.newest()
}

// pull receives the next event. The informer has not seen it yet.
func (a *agent) pull() event {
	if a.next == nil {
		next, stop := iter.Pull2(a.w.Watch(context.Background(), api.Options[*leaf]{ListOptions: metav1.ListOptions{ResourceVersion: strconv.Itoa(a.version)}}))
		a.next, a.stop = func() (event, bool) { e, err, ok := next(); return event{e, err}, ok }, stop
	}
	e, _ := a.next()
	if e.err != nil {
		a.fail("the watch fails: %v", e.err)
	}
	return e
}

// show gives an event to the informer.
func (a *agent) show(e event) {
	a.version, _ = strconv.Atoi(e.ResourceVersion)
	if !a.pretends {
		a.shown = a.history[a.version]
	}
}

func (a *agent) endWatch() {
	if a.next != nil {
		a.stop()
		a.next, a.stop = nil, nil
	}
}

// look returns the content of the files.
func (a *agent) look() (d disk) {
	d.file, _ = os.ReadFile(a.path)
	d.next, _ = os.ReadFile(a.path + ".new")
	return d
}

// kill ends the process without a word. The files are what they were at a moment before. Then another process starts.
func (a *agent) kill(d disk) {
	floor := a.version
	a.end()
	for path, content := range map[string][]byte{a.path: d.file, a.path + ".new": d.next} {
		_ = os.Remove(path)
		if content != nil {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				a.fail("WriteFile: %v", err)
			}
		}
	}
	a.boot(floor)
}

// end does what the kernel does at the end of a process.
func (a *agent) end() {
	a.endWatch()
	_ = a.w.file.close()
	if a.w.next != nil {
		_ = a.w.next.close()
	}
	_ = a.w.lock()
}

// torn returns how many bytes of a frame a killed process has written, for a frame of n bytes.
func torn(n int) []int { return []int{0, 2, frameHead - 1, frameHead, frameHead + 1, n - 1, n} }

// tornNames are names for the values of torn, in their order.
var tornNames = [...]string{"nothing", "a part of the length", "a part of the head", "the head", "a part of the payload", "all except one byte", "all"}

// killInEvent kills the process while it writes the next event.
func (a *agent) killInEvent(class int) {
	before := a.look()
	e := a.pull()
	after := a.look()
	if a.variant == showsFirst {
		a.show(e)
	}
	if n := len(after.file) - len(before.file); n > 0 {
		after.file = after.file[:len(before.file)+min(torn(n)[class], n)]
	}
	a.kill(after)
}

var errKilled = errors.New("the process is killed")

// killInList kills the process in a list, after n objects, in the middle of the next write. After two objects, that is
// the end of the list, before or after the file has its name.
func (a *agent) killInList(n, class int) {
	var then disk
	before := a.look()
	a.hook = func(i int) error {
		then = a.look()
		if i <= n {
			return nil
		}
		return errKilled
	}
	version, shown := a.version, a.shown
	err := a.list(false)
	a.hook = nil
	if err == nil { // all objects were written; the file has its end and its name
		after := a.look()
		then = disk{file: before.file, next: after.file}
		if class == 0 {
			then = after
		}
	}
	a.version, a.shown = version, shown
	if class > 0 && len(then.next) > 0 {
		then.next = then.next[:len(then.next)-min(len(then.next), class*5-5)]
	}
	a.kill(then)
}

// killInCompact kills the process in a copy of the file, before a write.
func (a *agent) killInCompact(n int) {
	then := a.look()
	_, err := compacted(a.w.file, a.path+".new", func(int64) error {
		if n--; n < 0 {
			then = a.look()
			return errKilled
		}
		return nil
	})
	if err == nil {
		then.next = a.look().next
	}
	a.kill(then)
}

func (a *agent) rest() error {
	if a.variant == marksAhead {
		return nil // the informer is wrong too
	}
	if a.shown != a.history[a.newest()] || a.version != a.newest() {
		return fmt.Errorf("the informer shows %v at version %d, and the server has %v at %d", a.shown, a.version, a.history[a.newest()], a.newest())
	}
	if a.w.file == nil {
		return nil
	}
	in, version, err := a.written()
	if err != nil {
		return fmt.Errorf("the file is kept, and cannot be read: %w", err)
	}
	if in != a.shown || version != strconv.Itoa(a.version) {
		return fmt.Errorf("the file has %v at version %s, and the informer %v at %d", in, version, a.shown, a.version)
	}
	return nil
}

// written returns the state in the file.
func (a *agent) written() (in leaves, version string, err error) {
	state, err := openLog(a.path, nil, a.w.header(api.Options[*leaf]{}))
	if err != nil {
		return in, "", err
	}
	defer state.file.close()
	for all := state.file.newest(state.index); ; {
		payload, _, err := all.next()
		if errors.Is(err, io.EOF) {
			return in, state.version, nil
		}
		r, err := decodeRecord(payload)
		if err != nil {
			return in, "", err
		}
		in[r.key.Name[0]-'a'], _ = strconv.Atoi(r.version)
	}
}

// parts returns what the server, the informer and the file have.
func (a *agent) parts() []string {
	file := "file: none that can be used"
	if in, version, err := a.written(); err == nil {
		file = fmt.Sprintf("file: version %s, %v", version, in)
	}
	return []string{
		fmt.Sprintf("server: version %d, %v", a.newest(), a.history[a.newest()]),
		fmt.Sprintf("informer: version %d, %v", a.version, a.shown), file,
	}
}

func (a *agent) key(to []byte) []byte {
	d, k := a.look(), a.w.keeper
	to = fmt.Append(to, a.history, a.shown, a.version, k.newest, k.file != nil, k.watches, k.status.Stopped != nil, a.next != nil, len(d.file), len(d.next))
	if k.file != nil {
		to = fmt.Append(to, k.file.size, k.file.whole, k.file.version, k.file.file.Name())
	}
	return append(to, d.file...)
}

func fileMachine(t *testing.T, v fileVariant) explore.Machine[*agent] {
	folder, err := os.MkdirTemp("/dev/shm", "explore")
	if err != nil {
		folder = t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	free := make(chan *workplace, 8)
	for i := range cap(free) {
		path := filepath.Join(folder, strconv.Itoa(i))
		free <- &workplace{path, codec.New[*leaf](codec.Options{})}
	}
	type step = explore.Step[*agent]
	var steps []step
	add := func(name string, can func(*agent) bool, do func(*agent)) {
		steps = append(steps, step{Name: name, Can: can, Do: do})
	}
	always := func(*agent) bool { return true }
	behind := func(a *agent) bool { return a.version < a.newest() }
	kept := func(a *agent) bool { return a.w.file != nil }
	add("the informer receives an event", behind, func(a *agent) { a.show(a.pull()) })
	steps[0].Fair = true
	for name := range 2 {
		for _, exists := range []bool{true, false} {
			what := map[bool]string{true: "puts", false: "deletes"}[exists]
			add(fmt.Sprintf("the server %s %c", what, 'a'+name), func(a *agent) bool {
				return a.newest() < mostVersions && (exists || a.history[a.newest()][name] > 0)
			}, func(a *agent) {
				version := 0
				if exists {
					version = a.newest() + 1
				}
				a.write(name, version)
			})
		}
	}
	add("the informer receives a bookmark", func(a *agent) bool { return !behind(a) || a.variant == marksAhead }, func(a *agent) {
		a.pretends = true
		a.show(a.pull())
		a.pretends = false
	})
	add("the watch ends", func(a *agent) bool { return a.next != nil }, (*agent).endWatch)
	add("list", always, func(a *agent) { _ = a.list(true) })
	add("WatchList", always, (*agent).watchList)
	for _, accept := range []bool{true, false} {
		add(fmt.Sprintf("an old list, accepted: %v", accept), func(a *agent) bool { return a.newest() > 1 }, func(a *agent) {
			a.lag = 1
			_ = a.list(accept)
			a.lag = 0
		})
	}
	add("compact", kept, func(a *agent) {
		if err := a.w.compact(); err != nil {
			a.fail("compact: %v", err)
		}
	})
	add("the disk fails", kept, func(a *agent) {
		readOnly, err := os.Open(a.path)
		if err != nil {
			a.fail("Open: %v", err)
			return
		}
		_ = a.w.file.file.Close()
		a.w.file.file = readOnly
	})
	add("Close and start", always, func(a *agent) {
		a.endWatch()
		floor := a.version
		if err := a.w.Close(); err != nil {
			a.fail("Close: %v", err)
		}
		a.boot(floor)
	})
	add("kill and start", always, func(a *agent) { a.kill(a.look()) })
	for class, written := range tornNames {
		add("kill in the write of an event, after "+written+", and start", behind, func(a *agent) { a.killInEvent(class) })
	}
	for _, at := range [][2]int{{0, 1}, {1, 2}, {2, 1}, {2, 2}, {2, 0}} {
		add(fmt.Sprintf("kill in a list after %d objects, class %d, and start", at[0], at[1]), always, func(a *agent) { a.killInList(at[0], at[1]) })
	}
	for _, n := range []int{0, 2, 9} {
		add(fmt.Sprintf("kill in a copy before write %d, and start", n), kept, func(a *agent) { a.killInCompact(n) })
	}
	return explore.Machine[*agent]{
		New: func() *agent {
			p := <-free
			a := &agent{workplace: p, at: p, history: []leaves{{}, {1, 0}}, variant: v}
			a.boot(0)
			return a
		},
		Close: func(a *agent) {
			a.end()
			_, _ = os.Remove(a.path), os.Remove(a.path+".new")
			free <- a.at
		},
		Steps: steps, Key: (*agent).key, Check: func(a *agent) error { return a.wrong }, Rest: (*agent).rest, FairSteps: 10,
		Lines: (*agent).parts,
	}
}

// TestExplore kills processes at each write of their file, and makes every order of changes, lists and starts.
func TestExplore(t *testing.T) {
	explore.Test(t, fileMachine(t, 0).World(), explore.Options{Depth: 30, States: 600})
}

// Each variant breaks a rule that such a file needs. The exploration must find it.
func TestExploreFindsBrokenRules(t *testing.T) {
	for v, c := range [][4]string{
		showsFirst:   {"and the one before it had shown version", "shown_unwritten", "The informer shows an event before it is written.", "A process that starts again shows no state older than the one before it showed, or it lists (package warmstart, 1)."},
		skipsDeletes: {"the file has", "unwritten_deletion", "A deletion is not written.", "The file has the state of the informer, so no change is lost (package warmstart, 3)."},
		marksAhead:   {"and the server had", "early_bookmark", "The server sends a bookmark before the changes up to its version.", "The file has the state of the informer, so no change is lost (package warmstart, 3)."},
	} {
		if c[0] != "" {
			fileMachine(t, fileVariant(v)).Show(t, explore.Options{Depth: 8, States: 20_000}, c[0], "../../docs/counterexamples/"+c[1]+".txt", c[2], c[3])
		}
	}
}

// TestCounterexamples plays what explorations have found.
func TestCounterexamples(t *testing.T) {
	require.NoError(t, fileMachine(t, 0).Play(`
		> the server deletes a
		> the informer receives an event
		> an old list, accepted: false
		> an old list, accepted: false
	`)) // the second old list became the file
}
