package recording

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/internal/fixture/must"
)

// feeder writes streams to the sink of a ring, without a client.
type feeder struct {
	*testing.T
	ring    *Ring
	sink    *ringSink
	version int
	last    uint64 // stream
}

func newFeeder(t *testing.T, o RingOptions) *feeder {
	o.Dir = t.TempDir()
	ring := must.Get(NewRing(o))(t)
	t.Cleanup(func() { require.NoError(t, ring.ring.close()) })
	return &feeder{T: t, ring: ring, sink: ring.ring, version: 10}
}

// open opens a stream, and returns its ID.
func (f *feeder) open(plural string, watch bool, options ...string) uint64 {
	f.last++
	s := &Stream{ID: f.last, At: time.Now(), Version: "v1", Plural: plural, Watch: watch, Code: 200, ContentType: typeJSON}
	for i := 0; i < len(options); i += 2 {
		s.option(options[i], options[i+1])
	}
	f.sink.opened(s)
	return s.ID
}

// data writes data at once, because a block is larger than a segment.
func (f *feeder) data(id uint64, text string) {
	f.sink.data(id, time.Now(), []byte(text))
	require.NoError(f, f.sink.flush())
}

// object returns an object with a new version and random text.
func (f *feeder) object(kind, name string, size int) string {
	f.version++
	return fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"namespace":"default","resourceVersion":"%d","annotations":{"text":%q}}}`,
		kind, name, f.version, noise(f.version, size))
}

// noise returns a text in which nothing repeats.
func noise(seed, size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%016x", uint64(seed*1_000_003+n+1)*0x9E3779B97F4A7C15)
	}
	return b.String()[:size]
}

func (f *feeder) event(id uint64, kind, name string) {
	f.data(id, `{"type":"MODIFIED","object":`+f.object(kind, name, 900)+"}\n")
}

// nodes lists a node that never changes, and another one, and then watches them.
func (f *feeder) nodes() (watch uint64) {
	list := f.open("nodes", false)
	f.data(list, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+f.object("Node", "quiet", 10)+","+f.object("Node", "busy", 10)+`]}`)
	f.sink.ended(Ended, list, time.Now())
	return f.open("nodes", true)
}

// size returns the size of its segments.
func (f *feeder) size() (total int64) {
	for _, s := range f.sink.segments {
		total += s.size
	}
	return total + f.sink.current().w.offset
}

// dump makes a dump without problems, and returns its timeline.
func (f *feeder) dump() *Timeline[*corev1.Pod] {
	path := must.Get(f.ring.Dump())(f)
	file := must.Get(Open(path))(f)
	defer file.Close()
	require.Empty(f, file.Problems())
	opened := map[uint64]bool{}
	for rec := range file.Records(nil) {
		require.False(f, rec.Kind == Opened && opened[rec.Stream.ID], "a stream begins once")
		opened[rec.Stream.ID] = true
	}
	return must.Get(Load[*corev1.Pod](f.Context(), file.Reader, nil))(f)
}

// names returns the objects of a resource at the end of a timeline.
func names(t *Timeline[*corev1.Pod], plural string) (names []string) {
	_, last := t.Span()
	for _, r := range t.Resources() {
		if r.Plural == plural {
			for _, c := range t.At(r, last) {
				names = append(names, c.Key.Name)
			}
		}
	}
	return names
}

const ringBytes = 100_000

// TestAListThatDoesNotEndIsLost has lists and WatchLists that do not end, while the watch of another resource goes on.
// The segments stay within the bounds. Dumps have the state of the other resource, and say that a stream is lost.
func TestAListThatDoesNotEndIsLost(t *testing.T) {
	const begin = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`
	watchList := []string{"sendInitialEvents", "true"}
	for name, test := range map[string]struct {
		begin  func(f *feeder) uint64
		during func(f *feeder, id uint64)
	}{
		"no body":   {func(f *feeder) uint64 { return f.open("pods", false) }, func(*feeder, uint64) {}},
		"a part":    {func(f *feeder) uint64 { id := f.open("pods", false); f.data(id, begin); return id }, func(*feeder, uint64) {}},
		"WatchList": {func(f *feeder) uint64 { return f.open("pods", true, watchList...) }, func(*feeder, uint64) {}},
		"WatchList with events": {func(f *feeder) uint64 { return f.open("pods", true, watchList...) }, func(f *feeder, id uint64) {
			f.event(id, "Pod", "web")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFeeder(t, RingOptions{MaxBytes: ringBytes})
				watch := f.nodes()
				for range 50 {
					f.event(watch, "Node", "busy")
				}
				stuck := test.begin(f)
				noted := 0
				for n := range 1000 {
					f.event(watch, "Node", "busy")
					test.during(f, stuck)
					<-time.After(time.Millisecond)
					require.Less(t, f.size(), int64(2.3*ringBytes))
					if n%100 == 99 {
						timeline := f.dump()
						require.Equal(t, []string{"busy", "quiet"}, names(timeline, "nodes"))
						noted += len(timeline.Notes())
					}
				}
				require.Positive(t, noted)
				require.EqualValues(t, 1, f.ring.Stats().Lost)
				f.data(stuck, `]}`)
				f.sink.ended(Ended, stuck, time.Now())
				require.Less(t, f.size(), int64(1.3*ringBytes))
				require.Empty(t, f.dump().Notes(), "the end of the stream is forgotten")
			})
		})
	}
}

// TestASlowListIsLost has a list that takes longer than twice the age of the ring. The list after it is recorded.
func TestASlowListIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeeder(t, RingOptions{MaxAge: 10 * time.Second})
		watch := f.nodes()
		f.open("pods", false)
		for n := range 40 {
			<-time.After(time.Second)
			f.event(watch, "Node", "busy")
			require.EqualValues(t, n/20, f.ring.Stats().Lost)
		}
		require.Less(t, 5, f.sink.next)
		require.Equal(t, []string{"busy", "quiet"}, names(f.dump(), "nodes"))
		list := f.open("pods", false)
		f.data(list, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+f.object("Pod", "web", 10)+`]}`)
		f.sink.ended(Ended, list, time.Now())
		for range 18 {
			<-time.After(time.Second)
			f.event(watch, "Node", "busy")
		}
		timeline := f.dump()
		require.Empty(t, timeline.Notes())
		require.Equal(t, []string{"web"}, names(timeline, "pods"))
	})
}

// TestALargeListIsNotLost has a list and a WatchList that are larger than the ring, and take their time.
func TestALargeListIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeeder(t, RingOptions{MaxBytes: ringBytes})
		watch := f.nodes()
		list, pods := f.open("pods", false), f.open("services", true, "sendInitialEvents", "true")
		f.data(list, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+f.object("Pod", "pod", 10))
		for n := range 100 {
			f.event(watch, "Node", "busy")
			f.data(list, ","+f.object("Pod", fmt.Sprintf("pod-%d", n), 2000))
			f.data(pods, `{"type":"ADDED","object":`+f.object("Service", fmt.Sprintf("service-%d", n), 2000)+"}\n")
		}
		f.data(list, `]}`)
		f.sink.ended(Ended, list, time.Now())
		f.data(pods, `{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"9000","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
		for range 500 {
			f.event(watch, "Node", "busy")
		}
		require.Zero(t, f.ring.Stats().Lost)
		require.Less(t, f.size(), int64(1.3*ringBytes))
		timeline := f.dump()
		require.Empty(t, timeline.Notes())
		require.Len(t, names(timeline, "pods"), 101)
		require.Len(t, names(timeline, "services"), 100)
	})
}

// TestListsThatOverlap always has a list that is not complete, and pages that have no next one. All of them end soon.
func TestListsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeeder(t, RingOptions{MaxBytes: ringBytes})
		watch := f.nodes()
		answer := func(kind string) string {
			return `{"kind":"` + kind + `List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` + f.object(kind, "web", 1000) + `]}`
		}
		before := f.open("pods", false)
		for range 600 {
			next := f.open("pods", false)
			f.data(before, answer("Pod"))
			f.sink.ended(Ended, before, time.Now())
			page := f.open("services", false, "limit", "1")
			f.data(page, answer("Service"))
			f.sink.ended(Ended, page, time.Now())
			f.event(watch, "Node", "busy")
			before = next
			require.Less(t, f.size(), int64(3.3*ringBytes))
		}
		require.Less(t, f.ring.Stats().Lost, uint64(30), "of 600")
		timeline := f.dump()
		require.Equal(t, []string{"busy", "quiet"}, names(timeline, "nodes"))
		require.Equal(t, []string{"web"}, names(timeline, "pods"))
	})
}

// TestARestOfAListIsNotRead forgets the beginning of a list. The rest looks like a whole list, and dumps do not take it
// for one.
func TestARestOfAListIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeeder(t, RingOptions{MaxBytes: ringBytes, MaxDumps: 100})
		watch := f.nodes()
		list := f.open("nodes", false)
		f.data(list, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"50000"},"items":[`)
		for n := 0; f.ring.Stats().Lost == 0; n++ {
			<-time.After(time.Second)
			f.event(watch, "Node", "busy")
			if len(f.sink.segments) > 9 && n%5 == 0 {
				f.data(list, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"50000"},"items":[]}`)
			}
		}
		require.Greater(t, f.sink.next-len(f.sink.segments), 5, "segments are forgotten")
		end := f.sink.next - 1 // the segment in which the list is lost
		for f.sink.next-len(f.sink.segments) < end {
			timeline := f.dump()
			require.Equal(t, []string{"busy", "quiet"}, names(timeline, "nodes"))
			require.Len(t, timeline.Notes(), 1)
			require.Contains(t, timeline.Notes()[0], "the recorder lost the rest of a request for nodes")
			for range 5 {
				f.event(watch, "Node", "busy")
			}
		}
		for range 30 {
			f.event(watch, "Node", "busy")
		}
		timeline := f.dump()
		require.Empty(t, timeline.Notes())
		require.Equal(t, []string{"busy", "quiet"}, names(timeline, "nodes"))
	})
}

// TestInitialEventsThatEndEarly ends a WatchList before its bookmark, while another one of the scope sends the same
// objects. The state has only the objects of the complete one.
func TestInitialEventsThatEndEarly(t *testing.T) {
	l := newLoader[*identified](nil)
	var streams []*Stream
	send := func(id int, event string) {
		l.record(Record{Kind: Data, Stream: streams[id], Data: []byte(event + "\n")})
	}
	pod := func(name string) string {
		return `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","resourceVersion":"7"}}}`
	}
	for id := range 2 {
		s := &Stream{ID: uint64(id), Version: "v1", Plural: "pods", Code: 200, ContentType: typeJSON, Watch: true, Options: map[string]string{"sendInitialEvents": "true"}}
		streams = append(streams, s)
		l.record(Record{Kind: Opened, Stream: s})
		send(id, pod("web"))
	}
	send(0, pod("gone"))
	l.record(Record{Kind: Broken, Stream: streams[0]})
	send(1, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	l.stop()
	require.Len(t, l.timeline.changes, 1)
	require.Equal(t, "web", l.timeline.changes[0].Key.Name)
	require.Len(t, l.scopes[streams[0].scope()].objects, 1)
}
