package subject_test

import (
	"bufio"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/bench/engine/clientgo"
	"github.com/leatproject/leat/bench/engine/controllerruntime"
	"github.com/leatproject/leat/bench/engine/leat"
	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	set       = load.NewSet(load.Seed, 20)
	libraries = map[string]subject.Library{
		"leat": leat.Library(), "client-go": clientgo.Library(), "controller-runtime": controllerruntime.Library(),
	}
)

const objects = 60

// play does a work, and the runner's part when the subject is ready.
func play(t *testing.T, library string, s subject.Spec, turn func()) (*subject.Report, error) {
	t.Helper()
	report := &subject.Report{Metrics: subject.Metrics{}}
	in, tell := io.Pipe()
	hear, out := io.Pipe()
	go func() {
		for lines := bufio.NewReader(hear); ; {
			line, err := lines.ReadString('\n')
			if err != nil || line != subject.Ready+"\n" {
				return
			}
			turn()
			_, _ = io.WriteString(tell, "go on\n") // fails if the work has failed
		}
	}()
	err := subject.Do(libraries[library], s, report, in, out)
	require.NoError(t, hear.Close())
	return report, err
}

func serve(t *testing.T) *server.Server {
	t.Helper()
	s := must.Get(server.New(set, server.Options{Objects: objects}))(t)
	fixture.Start(t, s.Run)
	return s
}

func TestEveryWork(t *testing.T) {
	for _, c := range []struct {
		library string
		form    subject.Form
		wire    subject.Wire
	}{
		{"leat", subject.Full, subject.JSON},
		{"leat", subject.Full, subject.Protobuf},
		{"leat", subject.Struct, subject.JSON},
		{"leat", subject.Metadata, subject.Protobuf},
		{"leat", subject.Unstructured, subject.JSON},
		{"client-go", subject.Full, subject.JSON},
		{"client-go", subject.Full, subject.Protobuf},
		{"client-go", subject.Metadata, subject.Protobuf},
		{"client-go", subject.Unstructured, subject.JSON},
	} {
		t.Run(c.library+" "+string(c.form)+" "+string(c.wire), func(t *testing.T) {
			s := serve(t)
			spec := subject.Spec{Work: subject.Sync, URL: s.URL(), Form: c.form, Wire: c.wire, Objects: objects, Events: 40}
			report, err := play(t, c.library, spec, nil)
			require.NoError(t, err)
			require.EqualValues(t, objects, report.Metrics["objects"])
			require.Positive(t, report.Metrics["live B/object"])
			for _, r := range s.Requests() {
				require.Equal(t, server.Request{
					Watch: true, Streaming: true, Metadata: c.form == subject.Metadata, Protobuf: c.wire == subject.Protobuf, Proto: "HTTP/1.1",
				}, r)
			}

			spec.Work = subject.Events
			report, err = play(t, c.library, spec, func() {
				for i := range spec.Events {
					s.Change(i % 7)
				}
			})
			require.NoError(t, err)
			require.Positive(t, report.Metrics["cpu us/event"])

			spec.Work = subject.Latency
			report, err = play(t, c.library, spec, func() {
				pods := make([]int, spec.Events)
				require.NoError(t, s.ChangeEvery(t.Context(), 100*time.Microsecond, pods))
			})
			require.NoError(t, err)
			require.Len(t, report.Arrivals, spec.Events)

			spec.Work = subject.Relist
			report, err = play(t, c.library, spec, func() {
				before := len(s.Requests())
				s.Expire()
				for len(s.Requests()) == before {
					require.NoError(t, s.AwaitWatches(t.Context(), before+1))
				}
				s.Change(1)
			})
			require.NoError(t, err)
			require.True(t, report.Metrics["notifications"] == 0 || c.library == "client-go", "client-go notifies handlers of unchanged objects")
			require.Greater(t, report.Metrics["peak MB"], 0.1)
		})
	}
}

func TestTap(t *testing.T) {
	s := serve(t)
	spec := subject.Spec{Work: subject.Events, URL: s.URL(), Form: subject.Struct, Wire: subject.JSON, Objects: objects, Events: 40, Tap: true}
	report, err := play(t, "leat", spec, func() {
		for i := range spec.Events {
			s.Change(i % 7)
		}
	})
	require.NoError(t, err)
	require.Positive(t, report.Metrics["cpu us/event"])
}

func TestEveryWorkWithoutServer(t *testing.T) {
	for _, c := range []struct {
		library string
		works   map[subject.Work]string // and the metric of each
	}{
		{"leat", map[subject.Work]string{
			subject.Fanout: "deliveries/s", subject.Hindered: "deliveries/s", subject.Backlog: "B/delivery", subject.Stuck: "B/update", subject.Overhead: "B/object",
			subject.Queue: "ns/op", subject.QueueContended: "ns/op", subject.QueuePriorities: "ns/op", subject.QueueLimited: "ns/op",
			subject.Readers: "of spinning", subject.Finders: "of spinning",
		}},
		{"client-go", map[subject.Work]string{
			subject.Fanout: "deliveries/s", subject.Hindered: "deliveries/s", subject.Backlog: "B/delivery", subject.Stuck: "B/update", subject.Overhead: "B/object",
			subject.Queue: "ns/op", subject.QueueContended: "ns/op", subject.QueueLimited: "ns/op",
			subject.Readers: "of spinning", subject.Finders: "of spinning",
		}},
		{"controller-runtime", map[subject.Work]string{
			subject.Queue: "ns/op", subject.QueueContended: "ns/op", subject.QueuePriorities: "ns/op",
		}},
	} {
		for work, metric := range c.works {
			t.Run(c.library+" "+string(work), func(t *testing.T) {
				// A writer waits for tens of milliseconds if ten others use two cores.
				report, err := play(t, c.library, subject.Spec{Work: work, Objects: 500, Events: 3000, Handlers: 4, Lasts: 60 * time.Millisecond}, nil)
				require.NoError(t, err)
				require.Positive(t, report.Metrics[metric])
			})
		}
	}
}

// A handler that never returns does not delay the others, and its backlog is measured. Coalescing makes the backlog
// smaller.
func TestHindered(t *testing.T) {
	kept := func(library string, s subject.Spec) float64 {
		s.Work, s.Objects, s.Events, s.Handlers = subject.Hindered, 100, 50_000, 3
		report := must.Get(play(t, library, s, nil))(t)
		require.Positive(t, report.Metrics["deliveries/s"])
		return report.Metrics["kept MB"]
	}
	for _, library := range []string{"leat", "client-go"} {
		require.Greater(t, kept(library, subject.Spec{}), 1.0, library)
		require.Greater(t, kept(library, subject.Spec{Pause: time.Minute}), 1.0, library)
	}
	require.Less(t, kept("leat", subject.Spec{Coalesce: true}), 1.0)
}

// Readers list all objects, and finders find those of one value.
func TestReadersRead(t *testing.T) {
	for _, library := range []string{"leat", "client-go"} {
		s := subject.Spec{Work: subject.Readers, Objects: 5000, Lasts: 5 * time.Millisecond}
		report := must.Get(play(t, library, s, nil))(t)
		require.InDelta(t, 5000, report.Metrics["seen/read"], 1e-9)
		require.Positive(t, report.Metrics["reads/s"])
		require.InDelta(t, report.Metrics["of spinning"], report.Metrics["writes/cpu s"]/report.Metrics["writes/cpu s, spinning"], 1e-9)
		s.Work = subject.Finders
		report = must.Get(play(t, library, s, nil))(t)
		require.InDelta(t, 5, report.Metrics["seen/read"], 2)
	}
}

func TestUnknownWork(t *testing.T) {
	require.ErrorContains(t, must.Err(play(t, "leat", subject.Spec{Work: "nothing"}, nil)), `unknown work "nothing"`)
	_, err := play(t, "client-go", subject.Spec{Work: subject.Sync, Form: subject.Struct, Objects: 1}, nil)
	require.ErrorIs(t, err, subject.ErrUnsupported)
	require.ErrorIs(t, must.Err(play(t, "controller-runtime", subject.Spec{Work: subject.Readers}, nil)), subject.ErrUnsupported)
	require.ErrorIs(t, must.Err(play(t, "client-go", subject.Spec{Work: subject.Stuck, Coalesce: true, Objects: 1}, nil)), subject.ErrUnsupported)
}

func TestNamespaces(t *testing.T) {
	s := must.Get(server.NewCustom(0, 3, 2))(t)
	stop := fixture.Start(t, s.Run)
	spec := subject.Spec{Work: subject.Resources, Namespaces: 3, Objects: 2, Form: subject.Unstructured, URL: s.URL(), CA: s.Authority()}
	for _, library := range []string{"leat", "client-go"} {
		report, err := play(t, library, spec, nil)
		require.NoError(t, err, library)
		require.Positive(t, report.Metrics["goroutines"])
	}
	require.ErrorIs(t, must.Err(play(t, "controller-runtime", spec, nil)), subject.ErrUnsupported)
	stop()
}

func TestManyResources(t *testing.T) {
	s := must.Get(server.NewCustom(3, 0, 2))(t)
	stop := fixture.Start(t, s.Run)
	for _, form := range []subject.Form{subject.Unstructured, subject.Packed} {
		spec := subject.Spec{Work: subject.Resources, Resources: 3, Objects: 2, Form: form, URL: s.URL(), CA: s.Authority()}
		report, err := play(t, "leat", spec, nil)
		require.NoError(t, err, form)
		require.Positive(t, report.Metrics["live MB"], form)
	}
	stop()
}

func TestWarm(t *testing.T) {
	s := serve(t)
	spec := subject.Spec{Work: subject.Warm, URL: s.URL(), Form: subject.Struct, Wire: subject.JSON, Objects: objects}
	report := must.Get(play(t, "leat", spec, nil))(t)
	require.Greater(t, report.Metrics["list KB"], 100*report.Metrics["warm KB"])
	require.Positive(t, report.Metrics["file MB"])
	require.ErrorIs(t, must.Err(play(t, "client-go", spec, nil)), subject.ErrUnsupported)
}
