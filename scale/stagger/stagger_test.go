package stagger_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/scale/stagger"
	"github.com/leatproject/leat/scale/warmstart"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// pod has the fields that the agent of a node reads.
type pod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var pods = fixture.Pods

type world struct{ *fixture.Fixture }

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, test func(t *testing.T, w world)) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) { test(t, world{f}) })
}

func (w world) create(name, node string) {
	w.Helper()
	p := &pod{ObjectMeta: fixture.Meta("default", name)}
	p.Spec.NodeName = node
	w.Create(pods, p)
}

func (w world) source(namespace string) *apiclient.PartialClient[*pod] {
	return apiclient.NewPartial[*pod](w.Client, pods, namespace)
}

// spread runs an informer of one namespace.
func (w world) spread(s *stagger.Start, namespace string, o informer.Options[*pod]) *informer.Informer[*pod] {
	inf := informer.New(stagger.Spread(s, w.source(namespace), o))
	w.Start(inf.Run)
	return inf
}

func half() float64 { return 0.5 }

func TestTheFirstListWaitsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		s := stagger.NewStart(stagger.Options{Jitter: time.Minute, Rand: half})
		started := time.Now()
		inf := w.spread(s, "default", informer.Options[*pod]{})
		<-inf.Synced()
		require.Equal(t, 30*time.Second, time.Since(started))
		<-w.spread(s, "other", informer.Options[*pod]{}).Synced()
		require.Equal(t, 30*time.Second, time.Since(started), "the second informer does not wait again")

		without := stagger.NewStart(stagger.Options{Jitter: -1})
		<-w.spread(without, "default", informer.Options[*pod]{}).Synced()
		require.Equal(t, 30*time.Second, time.Since(started))
	})
}

func TestTheWaitEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		s := stagger.NewStart(stagger.Options{Jitter: time.Hour, Rand: half})
		inf := informer.New(stagger.Spread(s, w.source(""), informer.Options[*pod]{}))
		stop := w.Start(inf.Run)
		synctest.Wait()
		started := time.Now()
		stop()
		require.Zero(t, time.Since(started))
		require.Empty(t, w.Server.Requests())
	})
}

func TestListsOfAProgramAreBounded(t *testing.T) {
	for _, lists := range []bool{false, true} {
		t.Run(fmt.Sprint("lists in pages: ", lists), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w world) {
				w.Server.Inject(faults.Fault{Effect: faults.Delay{For: time.Second}})
				s := stagger.NewStart(stagger.Options{Jitter: -1, MaxLists: 2})
				started := time.Now()
				var all []*informer.Informer[*pod]
				for i := range 6 {
					all = append(all, w.spread(s, fmt.Sprint("n", i), informer.Options[*pod]{Tuning: reflector.Tuning{NoWatchList: lists}}))
				}
				for _, inf := range all {
					<-inf.Synced()
				}
				require.Equal(t, 3*time.Second, time.Since(started), "two at once")
			})
		})
	}
}

func TestAFailedListLetsAnotherBegin(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		s := stagger.NewStart(stagger.Options{Jitter: -1, MaxLists: 1})
		w.Server.Inject(faults.Fault{Match: faults.Match{Namespace: "bad"}, Effect: faults.Fail{Code: 500}})
		w.spread(s, "bad", informer.Options[*pod]{})
		synctest.Wait()
		<-w.spread(s, "good", informer.Options[*pod]{}).Synced()
	})
}

// ending is a source whose informer is stopped after the first page of a list.
type ending struct {
	*apiclient.PartialClient[*pod]
	stop context.CancelFunc
}

func (e ending) List(context.Context, api.Options[*pod], func(*pod) error) (metav1.ListMeta, error) {
	e.stop()
	return metav1.ListMeta{ResourceVersion: "1", Continue: "more"}, nil
}

func TestAnInformerThatEndsLetsAnotherBegin(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		s := stagger.NewStart(stagger.Options{Jitter: -1, MaxLists: 2})
		for range 5 {
			ctx, stop := context.WithCancel(t.Context())
			o := informer.Options[*pod]{Tuning: reflector.Tuning{NoWatchList: true}}
			require.NoError(t, informer.New(stagger.Spread[*pod](s, ending{w.source(""), stop}, o)).Run(ctx))
		}
		<-w.spread(s, "", informer.Options[*pod]{}).Synced()
	})
}

// The first list may be of any version. A relist must not be older than the cache.
func TestOnlyTheFirstListIsOfAnyVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		w.create("a", "n")
		inf := w.spread(stagger.NewStart(stagger.Options{Jitter: -1}), "", informer.Options[*pod]{})
		<-inf.Synced()
		w.create("b", "n")
		synctest.Wait()
		version := inf.ResourceVersion()
		w.Server.Inject(faults.Fault{Effect: faults.Compact{}})
		w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
		<-time.After(time.Minute)
		var versions []string
		for _, r := range w.Server.Requests() {
			if r.Query.Get("sendInitialEvents") != "" {
				versions = append(versions, r.Query.Get("resourceVersion"))
			}
		}
		require.NotEmpty(t, versions)
		require.Equal(t, "0", versions[0])
		for _, v := range versions[1:] {
			require.NotEqual(t, "0", v)
		}
		order, ok := api.CompareVersions(inf.ResourceVersion(), version)
		require.True(t, ok && order >= 0)
	})
}

func TestAnAgentReadsThePodsOfItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		w.create("mine", "node-1")
		w.create("other", "node-2")
		s := stagger.NewStart(stagger.Options{Jitter: -1})
		inf := informer.New(stagger.ForNode(s, "node-1", w.source(""), informer.Options[*pod]{
			Selector: api.Selector{Fields: "metadata.namespace=default"},
		}))
		w.Start(inf.Run)
		<-inf.Synced()
		require.Equal(t, []api.Key{{Namespace: "default", Name: "mine"}}, keys(inf))
		require.Equal(t, "metadata.namespace=default,spec.nodeName=node-1", inf.Options().Selector.Fields)
	})
	require.Panics(t, func() {
		stagger.ForNode(stagger.NewStart(stagger.Options{}), "", (*apiclient.PartialClient[*pod])(nil), informer.Options[*pod]{})
	})
}

func keys(inf *informer.Informer[*pod]) (all []api.Key) {
	for _, p := range inf.Cache().List() {
		all = append(all, api.KeyOf(p))
	}
	return all
}

func TestMemoryIsBoundedByGOMEMLIMIT(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	source := (*apiclient.PartialClient[*pod])(nil)
	of := func(o informer.Options[*pod]) int {
		_, o = stagger.ForNode(stagger.NewStart(stagger.Options{}), "node", source, o)
		return o.MaxListObjects
	}
	require.Zero(t, of(informer.Options[*pod]{}))
	require.Zero(t, stagger.Config(apiclient.Config{}).MaxObjectBytes)
	debug.SetMemoryLimit(64 << 20)
	require.Equal(t, 8192, of(informer.Options[*pod]{}))
	require.Equal(t, 7, of(informer.Options[*pod]{Tuning: reflector.Tuning{MaxListObjects: 7}}))
	require.Equal(t, 4<<20, stagger.Config(apiclient.Config{}).MaxObjectBytes)
	require.Equal(t, 9, stagger.Config(apiclient.Config{MaxObjectBytes: 9}).MaxObjectBytes)
	debug.SetMemoryLimit(8 << 20)
	require.Equal(t, 2<<20, stagger.Config(apiclient.Config{}).MaxObjectBytes)

	inWorld(t, func(t *testing.T, w world) {
		debug.SetMemoryLimit(16 << 10) // two objects
		errs := make(chan error, 100)
		s := stagger.NewStart(stagger.Options{Jitter: -1})
		inf := informer.New(stagger.ForNode(s, "node", w.source(""), informer.Options[*pod]{Hooks: reflector.Hooks{OnError: func(err error) { errs <- err }}}))
		debug.SetMemoryLimit(math.MaxInt64)
		for i := range 3 {
			w.create(fmt.Sprint("p", i), "node")
		}
		w.Start(inf.Run)
		require.ErrorIs(t, <-errs, reflector.ErrEndlessList)
	})
}

// counted counts the requests for decoded objects.
type counted struct {
	*apiclient.PartialClient[*pod]
	decoded *int
}

func (c counted) List(ctx context.Context, o api.Options[*pod], each func(*pod) error) (metav1.ListMeta, error) {
	*c.decoded++
	return c.PartialClient.List(ctx, o, each)
}

func (c counted) Watch(ctx context.Context, o api.Options[*pod]) iter.Seq2[api.Event[*pod], error] {
	*c.decoded++
	return c.PartialClient.Watch(ctx, o)
}

// A source that can keep bytes is not decoded, and its lists wait too.
func TestPackedAndChecked(t *testing.T) {
	for _, lists := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w world) {
			w.create("a", "n")
			s := stagger.NewStart(stagger.Options{Jitter: time.Minute, MaxLists: 1, Rand: half})
			started := time.Now()
			decoded := 0
			o := informer.Options[*pod]{
				Hold: packed.Bytes[*pod](), Check: driftcheck.Every(time.Minute), Tuning: reflector.Tuning{NoWatchList: lists},
			}
			inf := informer.New(stagger.Spread[*pod](s, counted{w.source(""), &decoded}, o))
			w.Start(inf.Run)
			<-inf.Synced()
			require.Equal(t, 30*time.Second, time.Since(started), "the list has waited")
			<-w.spread(s, "other", informer.Options[*pod]{}).Synced()
			require.Equal(t, 30*time.Second, time.Since(started), "the list has let another begin")
			p, found := inf.Cache().Get(api.Key{Namespace: "default", Name: "a"})
			require.True(t, found)
			require.Equal(t, "n", p.Spec.NodeName)
			require.Zero(t, decoded)
			<-time.After(5 * time.Minute)
			require.Greater(t, inf.Status().Check.Checks, 1)
			require.NoError(t, inf.Status().Check.Err)
		})
	}
}

func TestUsersOfAFactoryShareAResult(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		f := factory.New(factory.Options{})
		w.Start(f.Run)
		source, o := stagger.Spread(stagger.NewStart(stagger.Options{Jitter: -1}), w.source(""), informer.Options[*pod]{})
		a := must.Get(factory.Shared(f, source, o))(t)
		b := must.Get(factory.Shared(f, source, o))(t)
		require.Same(t, a.Informer, b.Informer)
		<-a.Synced()
	})
}

// TestAListFromAFileLetsAnotherBegin starts two informers twice. The second time, each reads its state from a file.
func TestAListFromAFileLetsAnotherBegin(t *testing.T) {
	folder := t.TempDir()
	inWorld(t, func(t *testing.T, w world) {
		w.create("a", "n")
		for range 2 {
			s := stagger.NewStart(stagger.Options{Jitter: -1, MaxLists: 1})
			var ends []func()
			for _, name := range []string{"one", "two"} {
				source, o := stagger.Spread(s, w.source(""), informer.Options[*pod]{})
				warm := must.Get(warmstart.New(source, warmstart.Options{Path: filepath.Join(folder, name), Cluster: "test"}))(t)
				inf := informer.New(warm, o)
				stop := w.Start(inf.Run)
				ends = append(ends, func() {
					stop()
					require.NoError(t, warm.Close())
				})
				synctest.Wait()
				require.Equal(t, 1, inf.Snapshot().Len(), name)
			}
			for _, end := range ends {
				end()
			}
		}
	})
}

// TestAShardAcceptsAnyVersionAtFirst has a shard, whose source asks the server first whether it obeys the
// shardSelector. That is no list.
func TestAShardAcceptsAnyVersionAtFirst(t *testing.T) {
	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
	for _, outside := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w world) {
			w.create("a", "n")
			s := stagger.NewStart(stagger.Options{Jitter: -1})
			var source api.ListerWatcher[*pod] = w.source("")
			o := informer.Options[*pod]{}
			if outside {
				source, o = stagger.Spread(s, source, o)
				source = shardedsource.New(source, hashrange.UID, half, shardedsource.Options{})
			} else {
				source, o = stagger.Spread(s, api.ListerWatcher[*pod](shardedsource.New(source, hashrange.UID, half, shardedsource.Options{})), o)
			}
			inf := informer.New(source, o)
			w.Start(inf.Run)
			<-inf.Synced()
			requests := w.Server.Requests()
			require.Equal(t, "0", requests[len(requests)-1].Query.Get("resourceVersion"))
			require.Equal(t, "watch", requests[len(requests)-1].Verb)
		})
	}
}
