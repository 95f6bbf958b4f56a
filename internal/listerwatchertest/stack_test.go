package listerwatchertest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/scale/stagger"
	"github.com/leatproject/leat/scale/warmstart"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

type pod = metav1.PartialObjectMetadata

// stack is a ListerWatcher, and what must be true of it.
type stack struct {
	api.ListerWatcher[*pod]
	o      informer.Options[*pod]
	shard  []string        // the shardSelectors, from the inside
	shards []hashrange.Set // of UIDs
	bytes  bool            // it can keep the bytes of its answers
	packer bool            // it has a Packer of its own
	opaque bool            // nothing is known of the client
	masked bool            // objects keep only the label "kept"
}

// layer puts a wrapper around a stack.
type layer struct {
	name string
	wrap func(*testing.T, *stack)
}

var layers = []layer{
	{"cut", func(_ *testing.T, s *stack) {
		// Each shard of a shard leaves out another quarter.
		n := uint64(len(s.shards))
		hashes := hashrange.All().Minus(hashrange.NewSet(hashrange.Range{From: n << 62, To: (n + 1) << 62}))
		s.shards, s.shard = append(s.shards, hashes), append(s.shard, hashes.Selector(hashrange.UID))
		s.ListerWatcher = shardedsource.New(s.ListerWatcher, hashrange.UID, hashes, shardedsource.Options{})
	}},
	{"fleet", func(_ *testing.T, s *stack) {
		s.ListerWatcher, s.o = stagger.Spread(stagger.NewStart(stagger.Options{Jitter: -1}), s.ListerWatcher, s.o)
	}},
	{"warmstart", func(t *testing.T, s *stack) {
		w := must.Get(warmstart.New(s.ListerWatcher, warmstart.Options{Path: filepath.Join(t.TempDir(), "state"), Cluster: "test"}))(t)
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		s.ListerWatcher = w
	}},
	{"trace", func(_ *testing.T, s *stack) {
		s.ListerWatcher, s.bytes = trace.ListerWatcher(nil, s.ListerWatcher), false // a trace names the objects of events
	}},
}

var clients = []struct {
	name string
	make func(c *apiclient.Client) *stack
}{
	{"http", func(c *apiclient.Client) *stack {
		return &stack{ListerWatcher: apiclient.NewPartial[*pod](c, listerwatchertest.Pods, "default"), bytes: true}
	}},
	{"websocket", func(c *apiclient.Client) *stack {
		return &stack{ListerWatcher: websocket.Watch(apiclient.NewPartial[*pod](c, listerwatchertest.Pods, "default")), bytes: true}
	}},
	{"type at run time", func(c *apiclient.Client) *stack {
		lw := apiclient.NewPartialOf[*pod](c, listerwatchertest.Pods, "default", reflect.TypeFor[*pod]())
		return &stack{ListerWatcher: lw, bytes: true, packer: true}
	}},
	{"masked", func(c *apiclient.Client) *stack {
		mask, err := codec.NewMask[*pod](`metadata.labels["kept"]`)
		if err != nil {
			panic(err)
		}
		return &stack{ListerWatcher: apiclient.NewMasked[*pod](c, listerwatchertest.Pods, "default", mask), bytes: true, packer: true, masked: true}
	}},
	{"unknown", func(c *apiclient.Client) *stack {
		lw := apiclient.NewPartial[*pod](c, listerwatchertest.Pods, "default")
		return &stack{ListerWatcher: struct{ api.ListerWatcher[*pod] }{lw}, opaque: true}
	}},
}

// TestStacks puts each wrapper on each other, up to three deep, and looks at what the result says of itself and at the
// objects that informers read through it.
func TestStacks(t *testing.T) {
	depth := 3
	if testing.Short() {
		depth = 2
	}
	combinations := [][]layer{nil}
	for at := 0; len(combinations[at]) < depth; at++ {
		for _, l := range layers {
			combinations = append(combinations, append(combinations[at][:len(combinations[at]):len(combinations[at])], l))
		}
	}
	for _, client := range clients {
		for _, wrappers := range combinations {
			s := []string{client.name}
			for _, l := range wrappers {
				s = append(s, l.name)
			}
			t.Run(strings.Join(s, " "), func(t *testing.T) { testStack(t, client.make, wrappers) })
		}
	}
}

func testStack(t *testing.T, client func(*apiclient.Client) *stack, wrappers []layer) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{BookmarkInterval: -1}}, func(k *testkit.Kit) {
		make := func() *stack {
			s := client(k.Client)
			for _, l := range wrappers {
				l.wrap(k.T, s)
			}
			return s
		}
		s := make()
		want, labels := map[api.Key]bool{}, map[string]string{"kept": "1", "other": "2"}
		for i := range 12 {
			p := &pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), Labels: labels}}
			created := must.Get(k.Server.Create(listerwatchertest.Pods, p))(k)
			want[api.KeyOf(p)] = s.has(created.GetUID())
		}
		s.check(k)
		known := s.ListerWatcher.Collection().Shard != ""
		for _, holding := range []informer.Holding[*pod]{nil, packed.Bytes[*pod]()} {
			s := make()
			s.o.Hold = holding
			inf := informer.New(s.ListerWatcher, s.o)
			k.Start(inf.Run)
			<-inf.Synced()
			// The first probe runs beside the watch. An event must pass through each wrapper then and later.
			<-time.After(2 * time.Minute)
			require.Positive(k, inf.Status().Reflector.Counters.Probes)
			p := &pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "later-", Labels: labels}}
			later := must.Get(k.Server.Create(listerwatchertest.Pods, p))(k)
			want[api.Key{Namespace: "default", Name: later.GetName()}] = s.has(later.GetUID())
			synctest.Wait()
			for key, in := range want {
				object, cached := inf.Cache().Get(key)
				require.Equal(k, in, cached, key)
				if in {
					_, masked := codec.MaskOf(object)
					require.Equal(k, s.masked, masked)
					require.Equal(k, !s.masked, object.Labels["other"] == "2")
				}
			}
			require.Equal(k, known, inf.Status().Shard.By != "")
		}
	})
}

// has reports whether an object belongs to each shard of the stack.
func (s *stack) has(uid types.UID) bool {
	for _, hashes := range s.shards {
		if !hashes.Contains(hashrange.Hash(string(uid))) {
			return false
		}
	}
	return true
}

// check compares the collection and the capabilities of the stack with what must be true.
func (s *stack) check(k *testkit.Kit) {
	lw := s.ListerWatcher
	collection := api.Collection{Resource: listerwatchertest.Pods, Namespace: "default", Shard: strings.Join(s.shard, " and ")}
	require.Equal(k, collection, lw.Collection())

	sharded, ok := api.As[informer.Sharded[*pod]](lw)
	require.Equal(k, len(s.shards) > 0, ok)
	for i := range 32 {
		uid := types.UID(fmt.Sprint("uid-", i))
		if ok {
			require.Equal(k, s.has(uid), sharded.Selects(&pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}))
		}
	}

	_, decodes := api.As[codec.Source[*pod]](lw)
	require.Equal(k, !s.opaque, decodes)
	_, hasPacker := api.As[codec.PackerSource[*pod]](lw)
	require.Equal(k, s.packer, hasPacker)

	_, masked := api.As[codec.MaskSource](lw)
	require.Equal(k, s.masked, masked)

	keeper, ok := lw.(codec.PackedSource)
	bytes := ok && keeper.Packed(func(o codec.Options) *codec.Codec[*codec.Packed] {
		return codec.NewPacker[*pod](o).Codec(nil)
	}) != nil
	require.Equal(k, s.bytes, bytes)

	s.checkMetadata(k)
}

// checkMetadata lists the metadata of the stack. It has the same objects.
func (s *stack) checkMetadata(k *testkit.Kit) {
	lw := api.MetadataOf(s.ListerWatcher)
	if require.Equal(k, s.opaque, lw == nil); lw == nil {
		return
	}
	require.Equal(k, s.ListerWatcher.Collection(), lw.Collection())
	_, err := lw.List(context.Background(), api.Options[*pod]{}, func(p *pod) error {
		require.True(k, s.has(p.UID), p.Name)
		return nil
	})
	require.NoError(k, err)
}
