package warmstart_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/scale/stagger"
	"github.com/leatproject/leat/scale/warmstart"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var configMaps = fixture.ConfigMaps

type configMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data,omitempty"`
}

// machine is a bubble with a server, and a folder that survives the processes.
type machine struct {
	*fixture.Fixture
	o     warmstart.Options
	logs  *observer.ObservedLogs
	shard hashrange.Set // nil: the agents read all objects
	mask  *codec.Mask   // nil: the objects are whole
}

func onMachine(t *testing.T, test func(m *machine)) {
	t.Helper()
	folder := t.TempDir()
	fixture.Run(t, testserver.Options{RequestLog: 100}, func(_ *testing.T, f *fixture.Fixture) {
		core, logs := observer.New(zap.WarnLevel)
		test(&machine{Fixture: f, o: warmstart.Options{
			Path: filepath.Join(folder, "file"), Cluster: "test", Logger: zap.New(core),
		}, logs: logs})
	})
}

func (m *machine) set(name, value string) {
	m.Helper()
	o := &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value}}
	if _, err := m.Server.Get(configMaps, api.KeyOf(o)); err != nil {
		m.Create(configMaps, o)
		return
	}
	must.Get(m.Server.Update(configMaps, o))(m)
}

func (m *machine) delete(name string) {
	m.Helper()
	m.Delete(configMaps, api.Key{Namespace: "default", Name: name})
}

// process is an agent that was started.
type process struct {
	*machine
	warm *warmstart.ListerWatcher[*configMap]
	inf  *informer.Informer[*configMap]
	end  func()
}

// start starts an agent. It is synced, or waits for something, when start returns. The end of the test ends it.
func (m *machine) start(o informer.Options[*configMap]) *process {
	m.Helper()
	var source api.ListerWatcher[*configMap] = apiclient.NewPartial[*configMap](m.Client, configMaps, "")
	if m.mask != nil {
		source = apiclient.NewMasked[*configMap](m.Client, configMaps, "", m.mask)
	}
	if m.shard != nil {
		source = shardedsource.New(source, hashrange.UID, m.shard, shardedsource.Options{})
		source, o = stagger.Spread(stagger.NewStart(stagger.Options{Jitter: -1}), source, o)
	}
	warm := must.Get(warmstart.New(source, m.o))(m)
	m.Server.ForgetRequests()
	inf := informer.New(warm, o)
	stop := m.Start(inf.Run)
	synctest.Wait()
	end := sync.OnceFunc(func() {
		m.Helper()
		stop()
		require.NoError(m, warm.Close())
	})
	m.Cleanup(end)
	return &process{m, warm, inf, end}
}

// values returns what the agent sees.
func (p *process) values() map[string]string {
	synctest.Wait()
	out := map[string]string{}
	for _, o := range p.inf.Cache().All() {
		out[o.Name] = o.Data["value"]
	}
	return out
}

// requests returns the verbs of the requests since the start.
func (p *process) requests() []string {
	var out []string
	for _, r := range p.Server.Requests() {
		verb := r.Verb
		if strings.Contains(r.Query.Encode(), "sendInitialEvents=true") {
			verb = "watchlist"
		}
		out = append(out, verb)
	}
	return out
}

func TestSuite(t *testing.T) {
	listerwatchertest.Run(t, listerwatchertest.Options{SkipUndecodable: true},
		func(t *testing.T, s *testserver.Server) api.ListerWatcher[*metav1.PartialObjectMetadata] {
			c := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}))(t)
			w, err := warmstart.New(apiclient.NewPartial[*metav1.PartialObjectMetadata](c, listerwatchertest.Pods, ""),
				warmstart.Options{Path: filepath.Join(t.TempDir(), "file"), Cluster: "test"})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, w.Close()) })
			return w
		})
}

// TestWarmStart starts an agent three times. Only the first lists from the server.
func TestWarmStart(t *testing.T) {
	for _, tuning := range []reflector.Tuning{{}, {NoWatchList: true}} {
		t.Run(fmt.Sprintf("NoWatchList=%v", tuning.NoWatchList), func(t *testing.T) {
			onMachine(t, func(m *machine) {
				o := informer.Options[*configMap]{Tuning: tuning}
				m.set("a", "1")
				m.set("b", "1")
				p := m.start(o)
				require.False(m, p.warm.Status().Warm)
				require.ErrorContains(m, p.warm.Status().Cold, "there is no file")
				m.set("a", "2")
				m.set("c", "1")
				m.delete("b")
				require.Equal(m, map[string]string{"a": "2", "c": "1"}, p.values())
				p.end()

				m.set("a", "3") // while no agent runs
				m.delete("c")
				p = m.start(o)
				require.Equal(m, map[string]string{"a": "3"}, p.values())
				require.Equal(m, []string{"watch"}, p.requests())
				status := p.warm.Status()
				require.True(m, status.Warm)
				require.Equal(m, 2, status.Objects)
				require.NoError(m, status.Stopped)
				p.end()

				p = m.start(o)
				require.Equal(m, map[string]string{"a": "3"}, p.values())
				require.Equal(m, []string{"watch"}, p.requests())
				p.end()
				require.Empty(m, m.logs.All())
			})
		})
	}
}

// named has the method Marshal of its metadata, which does not encode the rest.
type named struct {
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

// TestTypes keeps objects of other types than a struct of the user with a kind.
func TestTypes(t *testing.T) {
	warm(t, func(o *named) string { return o.Data["value"] })
	warm(t, func(o *unstructured.Unstructured) string {
		out, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return out
	})
	warm(t, func(o *metav1.PartialObjectMetadata) string { return o.Labels["value"] })
}

func warm[T api.Object](t *testing.T, valueOf func(T) string) {
	t.Run(fmt.Sprintf("%T", *new(T)), func(t *testing.T) {
		onMachine(t, func(m *machine) {
			m.Create(configMaps, &configMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"value": "1"}},
				Data:       map[string]string{"value": "1"},
			})
			for _, first := range []bool{true, false} {
				w := must.Get(warmstart.New(apiclient.NewPartial[T](m.Client, configMaps, ""), m.o))(m)
				var got []string
				_, err := w.List(m.Context(), api.Options[T]{}, func(o T) error {
					got = append(got, o.GetName()+" "+valueOf(o))
					return nil
				})
				require.NoError(m, err)
				require.Equal(m, []string{"a 1"}, got)
				require.Equal(m, !first, w.Status().Warm)
				require.NoError(m, w.Close())
			}
		})
	})
}

// TestPackedInformer starts agents that hold the objects of one file in different forms, and checks them against the
// server. So each form reads what another one has written.
func TestPackedInformer(t *testing.T) {
	reverse := func(dst, src []byte) []byte {
		dst = append(dst, src[1:]...) // shorter, so that it is kept
		slices.Reverse(dst)
		return dst
	}
	coded := packed.Coded[*configMap](func([][]byte) (func(dst, src []byte) []byte, func(dst, src []byte) ([]byte, error), error) {
		return reverse, func(dst, src []byte) ([]byte, error) {
			dst = append(append(dst, '{'), src...)
			slices.Reverse(dst[1:])
			return dst, nil
		}, nil
	})
	onMachine(t, func(m *machine) {
		want := map[string]string{}
		for i := range 40 { // enough to train with
			name := fmt.Sprint("o", i)
			m.set(name, "1")
			want[name] = "1"
		}
		forms := []informer.Holding[*configMap]{nil, packed.Bytes[*configMap](), coded, packed.Bytes[*configMap](), coded, nil}
		for i, form := range forms {
			o := informer.Options[*configMap]{Hold: form, Check: driftcheck.Every(time.Minute)}
			want["o0"] = fmt.Sprint("while no agent runs ", i)
			m.set("o0", want["o0"])
			p := m.start(o)
			require.Equal(m, want, p.values())
			require.Equal(m, i > 0, p.warm.Status().Warm)
			if i > 0 {
				require.Equal(m, []string{"watch"}, p.requests())
			}
			want["o1"] = fmt.Sprint("while one runs ", i)
			m.set("o1", want["o1"])
			<-time.After(2 * time.Minute)
			require.Equal(m, want, p.values())
			check := p.inf.Status().Check
			require.NotZero(m, check.Checks)
			require.NoError(m, check.Err)
			require.Zero(m, check.Missed)
			p.end()
		}
		require.Empty(m, m.logs.All())
	})
}

// TestPackedInAnotherFormat keeps objects of a type that the file has in protobuf, and the server sends in JSON.
func TestPackedInAnotherFormat(t *testing.T) {
	type partial = metav1.PartialObjectMetadata
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		for _, first := range []bool{true, false} {
			w := must.Get(warmstart.New(apiclient.NewPartial[*partial](m.Client, configMaps, ""), m.o))(m)
			inf := informer.New(w, informer.Options[*partial]{Hold: packed.Bytes[*partial]()})
			stop := m.Start(inf.Run)
			synctest.Wait()
			o, ok := inf.Cache().Get(api.Key{Namespace: "default", Name: "a"})
			require.True(m, ok)
			require.Equal(m, "a", o.Name)
			require.Equal(m, !first, w.Status().Warm)
			require.NoError(m, w.Status().Stopped)
			stop()
			require.NoError(m, w.Close())
		}
	})
}

// TestProbesAreNoLists lists with other selectors, as a reflector does to learn the version of the server.
func TestProbesAreNoLists(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		p := m.start(informer.Options[*configMap]{})
		o := api.Options[*configMap]{}
		o.FieldSelector = "metadata.name=none"
		must.Get(p.warm.List(m.Context(), o, func(*configMap) error { return nil }))(m)
		p.end()
		p = m.start(informer.Options[*configMap]{})
		require.True(m, p.warm.Status().Warm)
	})
}

// TestUndecodable gives up the file when the informer keeps an older state than the server has.
func TestUndecodable(t *testing.T) {
	wrong := func(m *machine) {
		o := map[string]any{"metadata": map[string]any{"namespace": "default", "name": "a"}, "data": map[string]any{"value": 7}}
		must.Get(m.Server.Update(configMaps, o))(m)
		m.set("b", "1")
	}
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		p := m.start(informer.Options[*configMap]{})
		wrong(m)
		require.Equal(m, map[string]string{"a": "1", "b": "1"}, p.values())
		require.ErrorContains(m, p.warm.Status().Stopped, "default/a")
		p.end()
		p = m.start(informer.Options[*configMap]{})
		require.False(m, p.warm.Status().Warm)
		require.Equal(m, 1, p.inf.Status().Undecodable)
		require.ErrorContains(m, p.warm.Status().Stopped, "default/a", "nor has a list with such an object a file")
	})
}

// TestInterruptedStart ends while the file is read. The file stays.
func TestInterruptedStart(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		m.start(informer.Options[*configMap]{}).end()
		w := must.Get(warmstart.New(apiclient.NewPartial[*configMap](m.Client, configMaps, ""), m.o))(m)
		_, err := w.List(m.Context(), api.Options[*configMap]{DropManagedFields: true}, func(*configMap) error { return errUnreachable })
		require.ErrorIs(m, err, errUnreachable)
		require.NoError(m, w.Close())
		p := m.start(informer.Options[*configMap]{})
		require.True(m, p.warm.Status().Warm)
	})
}

func TestCloseDuringAWatch(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		p := m.start(informer.Options[*configMap]{})
		require.NoError(m, p.warm.Close())
		m.set("a", "2")
		require.Equal(m, map[string]string{"a": "2"}, p.values())
		p.end()
		p = m.start(informer.Options[*configMap]{})
		require.False(m, p.warm.Status().Warm, "the file would be older")
	})
}

// TestExpired: the server has forgotten the version, and the agent decodes only what has changed.
func TestExpired(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		m.set("b", "1")
		m.start(informer.Options[*configMap]{}).end()
		m.set("b", "2")
		m.Server.Inject(faults.Fault{Effect: faults.Compact{}})
		decoded := map[string]int{}
		o := informer.Options[*configMap]{}
		o.Transform = func(c *configMap) (*configMap, error) {
			decoded[c.Name]++
			return c, nil
		}
		p := m.start(o)
		require.Equal(m, map[string]string{"a": "1", "b": "2"}, p.values())
		require.Equal(m, []string{"watch", "list", "watch"}, p.requests())
		require.Equal(m, map[string]int{"a": 1, "b": 2}, decoded, "a came from the file alone")
		p.end()
		p = m.start(informer.Options[*configMap]{})
		require.Equal(m, []string{"watch"}, p.requests(), "the list replaced the file")
		require.Equal(m, map[string]string{"a": "1", "b": "2"}, p.values())
	})
}

// TestBadFiles starts an agent from a file that is not what it wrote. The agent sees the present state, at most one
// line of the log says why the file is not used, and the next start is warm.
func TestBadFiles(t *testing.T) {
	const damaged = "the file is damaged, was given up, has another key, or is not one of this package"
	for name, bad := range map[string]struct {
		change func(file []byte) []byte
		says   string // empty if the part that is there can be used
	}{
		"cut off in the last event":        {func(f []byte) []byte { return f[:len(f)-3] }, ""},
		"cut off before the last event":    {func(f []byte) []byte { return f[:lastFrame(f)] }, ""},
		"cut off in the header":            {func(f []byte) []byte { return f[:20] }, damaged},
		"cut off in the list":              {func(f []byte) []byte { return f[:bytes.Index(f, []byte(`"name":"a"`))] }, damaged},
		"empty":                            {func([]byte) []byte { return nil }, damaged},
		"a flipped bit in the header":      {flip(30), damaged},
		"a flipped bit in the list":        {func(f []byte) []byte { return flip(bytes.Index(f, []byte(`"name":"a"`)))(f) }, damaged},
		"a flipped bit in the last length": {func(f []byte) []byte { return flip(lastFrame(f) + 1)(f) }, damaged},
		"a flipped bit in an event":        {func(f []byte) []byte { return flip(bytes.LastIndex(f, []byte(`"name":"b"`)))(f) }, damaged},
		"something else":                   {func([]byte) []byte { return []byte("apiVersion: v1\nkind: ConfigMap\n") }, damaged},
		"of another type of the same kind": {nil, `its type is "*warmstart_test.named", and not "*warmstart_test.configMap"`},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, func(m *machine) {
				m.set("a", "1")
				if bad.change == nil {
					w := must.Get(warmstart.New(apiclient.NewPartial[*named](m.Client, configMaps, ""), m.o))(m)
					must.Get(w.List(m.Context(), api.Options[*named]{DropManagedFields: true}, func(*named) error { return nil }))(m)
					require.NoError(m, w.Close())
				} else {
					p := m.start(informer.Options[*configMap]{})
					m.set("b", "1")
					p.values()
					p.end()
					file := must.Get(os.ReadFile(m.o.Path))(m)
					require.NoError(m, os.WriteFile(m.o.Path, bad.change(file), 0o600))
				}
				m.set("a", "2")
				m.set("b", "2")
				p := m.start(informer.Options[*configMap]{})
				require.Equal(m, map[string]string{"a": "2", "b": "2"}, p.values())
				p.end()
				if bad.says == "" {
					require.True(m, p.warm.Status().Warm)
					require.Empty(m, m.logs.All())
					return
				}
				require.ErrorContains(m, p.warm.Status().Cold, bad.says)
				require.Len(m, m.logs.All(), 1, "one line")
				require.Equal(m, "warm start: the state is listed from the server", m.logs.All()[0].Message)
				p = m.start(informer.Options[*configMap]{})
				require.True(m, p.warm.Status().Warm, "the new file is used")
				require.Equal(m, map[string]string{"a": "2", "b": "2"}, p.values())
			})
		})
	}
}

// lastFrame returns where the last frame of a file begins.
func lastFrame(file []byte) (at int) {
	const head = 12
	for next := 0; next < len(file); {
		at = next
		next += head + int(binary.LittleEndian.Uint32(file[at:]))
	}
	return at
}

// flip changes a bit of a byte.
func flip(at int) func(file []byte) []byte {
	return func(file []byte) []byte {
		file[at] ^= 1
		return file
	}
}

var errUnreachable = errors.New("unreachable")

func unreachable(t *testing.T) *apiclient.Client {
	return must.Get(apiclient.New(apiclient.Config{Host: "http://127.0.0.1:1", Transport: refuse{}}))(t)
}

// TestOtherCollections changes what a file must agree with.
func TestOtherCollections(t *testing.T) {
	for says, change := range map[string]func(m *machine, o *informer.Options[*configMap]){
		`its cluster is "test", and not "other"`: func(m *machine, _ *informer.Options[*configMap]) { m.o.Cluster = "other" },
		`its labels is "", and not "app=x"`: func(_ *machine, o *informer.Options[*configMap]) {
			o.Selector.Labels = "app=x"
		},
		`its fields is "", and not "metadata.name=a"`: func(_ *machine, o *informer.Options[*configMap]) {
			o.Selector.Fields = "metadata.name=a"
		},
		`its noManagedFields is "true", and not "false"`: func(_ *machine, o *informer.Options[*configMap]) {
			o.KeepManagedFields = true
		},
		"the file is damaged, was given up, has another key": func(m *machine, _ *informer.Options[*configMap]) {
			m.o.Key = bytes.Repeat([]byte{1}, 32)
		},
	} {
		t.Run(says, func(t *testing.T) {
			onMachine(t, func(m *machine) {
				m.set("a", "1")
				m.start(informer.Options[*configMap]{}).end()
				o := informer.Options[*configMap]{}
				change(m, &o)
				p := m.start(o)
				require.ErrorContains(m, p.warm.Status().Cold, says)
				require.Equal(m, []string{"watchlist"}, p.requests())
				p.end()
				require.Len(m, m.logs.All(), 1, "one line")
				p = m.start(o)
				require.True(m, p.warm.Status().Warm, "the new file is used")
			})
		})
	}
}

// TestOtherShards starts agents twice for each shard. The first one has the file of another shard.
func TestOtherShards(t *testing.T) {
	onMachine(t, func(m *machine) {
		want := map[string]types.UID{}
		for n := range 20 {
			m.set(fmt.Sprint(n), "1")
			o := must.Get(m.Server.Get(configMaps, api.Key{Namespace: "default", Name: fmt.Sprint(n)}))(m)
			want[fmt.Sprint(n)] = o.GetUID()
		}
		half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
		for _, shard := range []hashrange.Set{hashrange.All(), half, hashrange.All().Minus(half), hashrange.All(), half} {
			m.shard = shard
			for n := range 2 {
				p := m.start(informer.Options[*configMap]{})
				require.Equal(m, n == 1, p.warm.Status().Warm, "%s", shard)
				have := p.values()
				for name, uid := range want {
					require.Equal(m, shard.Contains(hashrange.Hash(uid)), have[name] != "", "%s: %s", shard, name)
				}
				p.end()
			}
		}
	})
}

// TestOtherMasks uses one file with different masks: a file without a field that the program reads now is not used.
func TestOtherMasks(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		for _, fields := range []string{"", `data["other"]`, `data["value"]`, ""} {
			if m.mask = nil; fields != "" {
				m.mask = must.Get(codec.NewMask[*configMap](fields))(m)
			}
			for n := range 2 {
				for _, hold := range []informer.Holding[*configMap]{nil, packed.Bytes[*configMap]()} {
					p := m.start(informer.Options[*configMap]{Hold: hold})
					require.Equal(m, n == 1 || hold != nil, p.warm.Status().Warm, "%s: %v", fields, p.warm.Status().Cold)
					require.Equal(m, fields != `data["other"]`, p.values()["a"] == "1", fields)
					o, _ := p.inf.Cache().Get(api.Key{Namespace: "default", Name: "a"})
					_, masked := codec.MaskOf(o)
					require.Equal(m, fields != "", masked)
					p.end()
				}
			}
		}
	})
}

// TestAShardOfAFile has a source of a shard between the informer and the file, which then cannot have the collection.
func TestAShardOfAFile(t *testing.T) {
	onMachine(t, func(m *machine) {
		for n := range 20 {
			m.set(fmt.Sprint(n), "1")
		}
		m.start(informer.Options[*configMap]{}).end()
		m.set("0", "2")
		warm := must.Get(warmstart.New(apiclient.NewPartial[*configMap](m.Client, configMaps, ""), m.o))(m)
		half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
		inf := informer.New(shardedsource.New(warm, hashrange.UID, half, shardedsource.Options{}), informer.Options[*configMap]{})
		stop := m.Start(inf.Run)
		synctest.Wait()
		have := inf.Snapshot().Len()
		require.Positive(m, have)
		require.Less(m, have, 20)
		require.ErrorContains(m, warm.Status().Cold, "the requests are of a shard")
		stop()
		require.NoError(m, warm.Close())
		p := m.start(informer.Options[*configMap]{})
		require.Len(m, p.values(), 20)
		require.False(m, p.warm.Status().Warm, "the shard showed newer states than the file had")
	})
}

// TestEncryption: the file has nothing that can be read, and works with its key alone.
func TestEncryption(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.o.Key = bytes.Repeat([]byte{7}, 32)
		m.set("visible", "hunter2")
		p := m.start(informer.Options[*configMap]{})
		m.set("visible", "hunter3")
		p.values()
		p.end()
		file := must.Get(os.ReadFile(m.o.Path))(m)
		for _, text := range []string{"visible", "hunter", "configmaps", "default"} {
			require.NotContains(m, string(file), text)
		}
		p = m.start(informer.Options[*configMap]{})
		require.True(m, p.warm.Status().Warm)
		require.Equal(m, map[string]string{"visible": "hunter3"}, p.values())
	})
}

// TestTooManyWrites: the file is given up, and is no trap for the next process.
func TestTooManyWrites(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.o.BytesPerMinute = 4_000
		m.set("a", "1")
		p := m.start(informer.Options[*configMap]{})
		require.NoError(m, p.warm.Status().Stopped)
		m.set("a", strings.Repeat("x", 5_000))
		m.set("a", "2")
		require.Equal(m, map[string]string{"a": "2"}, p.values())
		require.ErrorContains(m, p.warm.Status().Stopped, "more than 4000 bytes a minute")
		p.end()
		require.Len(m, m.logs.All(), 1)
		p = m.start(informer.Options[*configMap]{})
		require.False(m, p.warm.Status().Warm)
		require.Equal(m, map[string]string{"a": "2"}, p.values())
	})
}

// TestCompaction changes one object until the file was rewritten twice.
func TestCompaction(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("gone", "1")
		m.set("kept", "1")
		p := m.start(informer.Options[*configMap]{})
		m.delete("gone")
		for i := range 45 {
			m.set("a", fmt.Sprint(i, strings.Repeat("x", 200<<10)))
			synctest.Wait()
			require.Less(m, p.warm.Status().Bytes, int64(6<<20))
		}
		m.set("a", "last")
		want := map[string]string{"kept": "1", "a": "last"}
		require.Equal(m, want, p.values())
		p.end()
		p = m.start(informer.Options[*configMap]{})
		require.Equal(m, []string{"watch"}, p.requests())
		require.Equal(m, want, p.values())
		p.end()
		require.NoFileExists(m, m.o.Path+".new")
	})
}

func TestWrongOptions(t *testing.T) {
	client := unreachable(t)
	path := filepath.Join(t.TempDir(), "file")
	source := func(r api.Resource) api.ListerWatcher[*configMap] {
		return apiclient.NewPartial[*configMap](client, r, "")
	}
	secrets := api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	for _, tc := range []struct {
		r    api.Resource
		o    warmstart.Options
		says string
	}{
		{configMaps, warmstart.Options{Cluster: "x"}, "warmstart: Options.Path is empty"},
		{configMaps, warmstart.Options{Path: path}, "warmstart: Options.Cluster is empty"},
		{configMaps, warmstart.Options{Path: path, Cluster: "x", BytesPerMinute: -1}, "warmstart: Options.BytesPerMinute is -1"},
		{configMaps, warmstart.Options{Path: path, Cluster: "x", Key: []byte("short")}, "warmstart: Options.Key: it has 5 bytes, and must have 32"},
		{secrets, warmstart.Options{Path: path, Cluster: "x"}, "warmstart: a file of Secrets needs Options.Key"},
		{configMaps, warmstart.Options{Path: filepath.Join(path, "none", "file"), Cluster: "x"}, "no such file or directory"},
	} {
		require.ErrorContains(t, must.Err(warmstart.New(source(tc.r), tc.o)), tc.says)
	}
	o := warmstart.Options{Path: path, Cluster: "x"}
	first := must.Get(warmstart.New(source(configMaps), o))(t)
	require.ErrorContains(t, must.Err(warmstart.New(source(configMaps), o)), path+".lock: another process uses the file")
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "twice")
	second := must.Get(warmstart.New(source(configMaps), o))(t)
	require.NoError(t, second.Close())
}

// refuse is a network without a server.
type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) { return nil, errUnreachable }

// TestAProbeIsNoList has a selector of one name, which a probe has too. Its answer must not become the file.
func TestAProbeIsNoList(t *testing.T) {
	onMachine(t, func(m *machine) {
		m.set("a", "1")
		o := informer.Options[*configMap]{Selector: api.Selector{Fields: "metadata.name=a"}}
		p := m.start(o)
		m.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		<-time.After(10 * time.Second)
		require.Positive(t, p.inf.Status().Reflector.Counters.Probes)
		p.end()
		p = m.start(o)
		require.True(t, p.warm.Status().Warm, p.warm.Status().Cold)
	})
}
