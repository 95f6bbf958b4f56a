package shardedsource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// replica is a set of scopes that follows ranges, and what a controller knows that works only in these ranges.
type replica struct {
	*world
	set    *scopes.Set[*object]
	scopes *shardedsource.Scopes[*object]

	mu      sync.Mutex
	held    hashrange.Set
	seen    map[api.Key]string // the versions that the controller got
	uids    map[api.Key]types.UID
	deleted []*object
	floor   map[types.UID]*object // the state of each object when its range was gained
	told    hashrange.Set         // of the follower that comes after the scopes
	gains   int                   // of that follower
	bound   hashrange.Set         // what that follower may have: held, and while it changes also the ranges before
}

func newReplica(w *world, o informer.Options[*object]) *replica {
	r := &replica{world: w, set: scopes.New(configMaps, scopes.Options[*object]{Options: o}), seen: map[api.Key]string{}, uids: map[api.Key]types.UID{}, floor: map[types.UID]*object{}}
	client := apiclient.NewPartial[*object](w.client(nil), configMaps, "")
	r.scopes = shardedsource.NewScopes(r.set, client, hashrange.UID, shardedsource.Options{})
	must.Get(r.set.Subscribe(r.note, informer.HandlerOptions{}))(w)
	r.scopes.Then(followerFunc(r.listed))
	w.Start(r.scopes.Run)
	w.Start(r.set.Run)
	return r
}

type followerFunc func(hashrange.Set)

func (f followerFunc) Follow(held hashrange.Set) { f(held) }

// listed checks that the cache has the objects of a range before the follower after the scopes gets it.
func (r *replica) listed(held hashrange.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.True(r, held.Minus(r.bound).Empty(), "a range is lost by all followers at once")
	assert.False(r, held.Equal(r.told), "each call has other ranges")
	gained := held.Minus(r.told)
	r.told = held
	if !gained.Empty() {
		r.gains++
	}
	for uid, before := range r.floor {
		if !gained.Contains(hashrange.Hash(uid)) {
			continue
		}
		cached, found := r.set.Cache().Get(api.KeyOf(before))
		if now, err := r.Server.Get(configMaps, api.KeyOf(before)); err != nil || now.GetUID() != uid {
			continue // it was deleted since
		}
		if assert.True(r, found && cached.UID == uid, "%v is not in the cache", api.KeyOf(before)) {
			assert.GreaterOrEqual(r, version(r, cached), version(r, before))
		}
	}
}

func version(t require.TestingT, o *object) (n int) {
	n = must.Get(strconv.Atoi(o.ResourceVersion))(t)
	return n
}

// note notes a change of an object in the ranges, as Kind.Source of package shard does.
func (r *replica) note(c api.Change[*object]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Type == api.Deleted {
		r.deleted = append(r.deleted, c.Object)
	}
	if r.held.Contains(hashrange.Hash(c.Object.UID)) {
		r.seen[api.KeyOf(c.Object)], r.uids[api.KeyOf(c.Object)] = c.Object.ResourceVersion, c.Object.UID
	}
}

// follow changes the ranges. The controller forgets what is in lost ranges, and reads new ranges from the cache.
func (r *replica) follow(held hashrange.Set) {
	r.mu.Lock()
	gained := held.Minus(r.held)
	lost := r.held.Minus(held)
	r.held, r.bound = held, held.Union(lost)
	all := must.Get(r.Server.List(configMaps, ""))(r)
	for _, o := range all {
		if gained.Contains(hashrange.Hash(o.GetUID())) {
			r.floor[o.GetUID()] = &object{ObjectMeta: metav1.ObjectMeta{
				Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
			}}
		}
	}
	for key, uid := range r.uids {
		if lost.Contains(hashrange.Hash(uid)) {
			delete(r.seen, key)
		}
	}
	r.mu.Unlock()
	r.scopes.Follow(held)
	r.mu.Lock()
	r.bound = held
	r.mu.Unlock()
	for _, o := range r.set.Cache().All() {
		if gained.Contains(hashrange.Hash(o.UID)) {
			r.note(api.Change[*object]{Type: api.Added, Object: o})
		}
	}
}

// check compares the cache, and what the controller got, with the objects of the server in the ranges.
func (r *replica) check() {
	r.Helper()
	fixture.Pass(5 * time.Minute)
	all := must.Get(r.Server.List(configMaps, ""))(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	want := map[api.Key]string{}
	for _, o := range all {
		for _, d := range r.deleted {
			require.NotEqual(r, o.GetUID(), d.UID, "no handler gets a deletion of an object that is there")
		}
		if key := api.KeyOf(o); r.held.Contains(hashrange.Hash(o.GetUID())) {
			want[key] = o.GetResourceVersion()
			require.Equal(r, want[key], r.seen[key], "the controller has not got the newest state of %v", key)
		}
	}
	got := map[api.Key]string{}
	for _, o := range r.set.Cache().List() {
		got[api.KeyOf(o)] = o.ResourceVersion
	}
	require.Equal(r, want, got)
	var scoped hashrange.Set
	for _, name := range r.set.Names() {
		one := must.Get(hashrange.Parse(name))(r)
		require.True(r, scoped.Intersect(one).Empty(), "scopes do not overlap")
		scoped = scoped.Union(one)
	}
	require.True(r, scoped.Equal(r.held), "%v, not %v", scoped, r.held)
	require.LessOrEqual(r, len(r.set.Names()), 4*len(r.held), "a range has at most four scopes")
	require.True(r, r.told.Equal(r.held), "%v, not %v", r.told, r.held)
}

// TestScopesFollowRanges changes the ranges of a replica at random moments, also before lists and removals are
// complete, while objects and connections come and go.
func TestScopesFollowRanges(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4 // each combination once
	}
	for seed := range seeds {
		sharded, paged := seed&1 > 0, seed&2 > 0
		t.Run(fmt.Sprintf("seed %d, sharded %v, paged %v", seed, sharded, paged), func(t *testing.T) {
			t.Parallel()
			inWorld(t, testserver.Options{ShardedLists: sharded, History: 100}, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(seed, 3))
				w.churn(random, configMaps, 120)
				o := informer.Options[*object]{}
				o.NoWatchList = paged
				r := newReplica(w, o)
				held := hashrange.Set{}
				for round := range 60 {
					from := random.Uint64N(16)
					one := hashrange.NewSet(hashrange.Range{From: from << 60, To: min(from+1+random.Uint64N(4), 16) << 60})
					next := held.Union(one)
					if random.IntN(2) == 0 {
						next = held.Minus(one)
					}
					if !next.Equal(held) {
						held = next
						r.follow(held)
					}
					w.churn(random, configMaps, random.IntN(20))
					<-time.After(time.Duration(random.IntN(3)*random.IntN(1000)) * time.Millisecond)
					switch round % 15 {
					case 4:
						w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
					case 9:
						w.Server.Inject(faults.Fault{Effect: faults.Compact{}})
					case 14:
						r.check()
					}
				}
				r.follow(nil)
				r.check()
				r.follow(hashrange.All())
				r.check()
			})
		})
	}
}

// TestListsOfNewRangesAreConsistent has a server whose cache is behind. The list of a new range does not come from it,
// so it has the last write of the former owner.
func TestListsOfNewRangesAreConsistent(t *testing.T) {
	for _, paged := range []bool{false, true} {
		inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
			w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 120)
			o := informer.Options[*object]{}
			o.NoWatchList = paged
			r := newReplica(w, o)
			half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
			for _, held := range []hashrange.Set{half, hashrange.All(), half, hashrange.All()} {
				r.follow(held)
				r.check()
			}
			lists := 0
			for _, request := range w.Server.Requests() {
				if request.Query.Get("watch") == "" || request.Query.Get("sendInitialEvents") == "true" {
					lists++
					require.Empty(t, request.Query.Get("resourceVersion"), "%v", request.Query)
				}
			}
			require.Greater(t, lists, 4)
		})
	}
}

// TestShrinkingKeepsObjects takes half of a range away. The other half is in the cache all the time.
func TestShrinkingKeepsObjects(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
		w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 120)
		r := newReplica(w, informer.Options[*object]{})
		half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
		r.follow(hashrange.All())
		r.check()
		kept := map[api.Key]bool{}
		for key, o := range r.set.Cache().All() {
			if half.Contains(hashrange.Hash(o.UID)) {
				kept[key] = true
			}
		}
		slow := w.Server.Inject(faults.Fault{Effect: faults.Delay{For: 20 * time.Second}})
		r.follow(half)
		for range 70 {
			<-time.After(time.Second)
			for key := range kept {
				_, found := r.set.Cache().Get(key)
				require.True(t, found)
			}
		}
		slow.Remove()
		r.check()
		require.Empty(t, r.deleted)
	})
}

// TestThenWaitsForTheList has a slow server. A follower that comes after the scopes gets a range with the list, and not
// before.
func TestThenWaitsForTheList(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
		w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 120)
		r := newReplica(w, informer.Options[*object]{})
		half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
		slow := w.Server.Inject(faults.Fault{Effect: faults.Delay{For: 20 * time.Second}})
		told := func() (hashrange.Set, int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.told, r.gains
		}
		r.follow(half)
		<-time.After(10 * time.Second)
		held, gains := told()
		require.Empty(t, held)
		require.Zero(t, gains)
		<-time.After(5 * time.Minute)
		held, gains = told()
		require.Equal(t, half, held)
		require.Equal(t, 1, gains)
		var late hashrange.Set
		remove := r.scopes.Then(followerFunc(func(held hashrange.Set) { late = held }))
		require.Equal(t, half, late, "a late follower gets the listed ranges at once")
		remove()
		r.follow(nil)
		held, _ = told()
		require.Empty(t, held, "a range is lost at once")
		r.follow(half)
		<-time.After(10 * time.Second)
		_, gains = told()
		require.Equal(t, 1, gains, "the cache has the range from an earlier time")
		slow.Remove()
		r.check()
		require.Equal(t, half, late)
	})
}

// TestScopesAndTheEndOfTheSet ends the set before its follower.
func TestScopesAndTheEndOfTheSet(t *testing.T) {
	inWorld(t, testserver.Options{}, func(t *testing.T, w *world) {
		set := scopes.New(configMaps, scopes.Options[*object]{})
		streams := shardedsource.NewScopes(set, apiclient.NewPartial[*object](w.client(nil), configMaps, ""), hashrange.UID, shardedsource.Options{})
		ended := make(chan error, 1)
		end := w.Start(func(ctx context.Context) error {
			ended <- streams.Run(ctx)
			return nil
		})
		short, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, set.Run(short))
		streams.Follow(hashrange.All())
		synctest.Wait()
		require.Empty(t, ended)
		end()
		require.NoError(t, <-ended)
	})
}

// TestWrongScopes has arguments that are mistakes of the program.
func TestWrongScopes(t *testing.T) {
	set := scopes.New(configMaps, scopes.Options[*object]{})
	require.PanicsWithValue(t, "shardedsource: the set of scopes is nil", func() { shardedsource.NewScopes[*object](nil, fake{}, hashrange.UID, shardedsource.Options{}) })
	require.Panics(t, func() { shardedsource.NewScopes[*object](set, nil, hashrange.UID, shardedsource.Options{}) })
	other := scopes.New(widgets, scopes.Options[*object]{})
	require.PanicsWithValue(t, "shardedsource: the source is of configmaps, and the set is of widgets.leat.test", func() {
		shardedsource.NewScopes(other, fake{object: &object{ObjectMeta: metav1.ObjectMeta{UID: "u"}}}, hashrange.UID, shardedsource.Options{})
	})
}

// TestAGateDoesNotWaitForOtherShards writes objects of all shards through a cache that has the scopes of half of them,
// in two streams. A Gate waits for the writes that the cache will show, and for no others.
func TestAGateDoesNotWaitForOtherShards(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true, BookmarkInterval: -1}, func(t *testing.T, w *world) {
		r := newReplica(w, informer.Options[*object]{})
		half := hashrange.NewSet(hashrange.Range{To: 1 << 62}, hashrange.Range{From: 3 << 62})
		r.follow(half)
		synctest.Wait()
		client := apiclient.NewTyped[*object](w.client(nil), configMaps, "")
		cached := cachedclient.NewTyped(client, r.set.Informer, cachedclient.Options{})
		stall := w.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
		defer stall.Remove()
		waited := map[bool]int{}
		for n := range 20 {
			gate := cachedclient.NewGate(cachedclient.GateOptions{})
			key := api.Key{Namespace: "default", Name: fmt.Sprint("m", n)}
			o := must.Get(cached.Create(gate.Begin(t.Context(), key), &object{ObjectMeta: fixture.Meta("default", key.Name)}, metav1.CreateOptions{}))(t)
			held := half.Contains(hashrange.Hash(o.UID))
			require.Equal(t, !held, gate.Ready(key, func() {}), "held: %v", held)
			waited[held]++
		}
		require.Len(t, waited, 2, "there are objects of both kinds")
	})
}

// TestStatusOfScopes has ranges of a server that ignores the shardSelector. Each scope and the informer say so, and the
// log says it once. What a scope has dropped counts after its end.
func TestStatusOfScopes(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		inWorld(t, testserver.Options{ShardedLists: sharded}, func(t *testing.T, w *world) {
			w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 80)
			set := scopes.New(configMaps, scopes.Options[*object]{})
			require.Zero(t, set.Status().Shard, "there is no scope")
			ranges := shardedsource.NewScopes(set, apiclient.NewPartial[*object](w.client(nil), configMaps, ""), hashrange.UID, shardedsource.Options{Logger: w.logger})
			m := must.Get(manager.New(manager.Options{}))(t)
			require.NoError(t, m.Add(set))
			w.Start(ranges.Run)
			w.Start(m.Run)
			ranges.Follow(thirds[1]) // two ranges
			<-time.After(time.Minute)
			all := must.Get(w.Server.List(configMaps, ""))(t)

			status := set.Status()
			require.Len(t, status.Scopes, 2)
			require.Len(t, w.log.All(), 1, "one entry for all ranges")
			by, dropped := shardedsource.Server, 0
			if !sharded {
				by, dropped = shardedsource.Client, 2*len(all)-status.Objects
				require.ErrorContains(t, status.Shard.Reason, "ShardedListAndWatch")
				require.Contains(t, status.String(), fmt.Sprintf("%d of other shards dropped", dropped))
			}
			require.Equal(t, by, status.Shard.By)
			require.EqualValues(t, dropped, status.Shard.Dropped)
			for _, s := range status.Scopes {
				require.Equal(t, by, s.Shard.By)
			}
			require.EqualValues(t, dropped, status.Scopes[0].Shard.Dropped+status.Scopes[1].Shard.Dropped)

			answer := httptest.NewRecorder()
			m.AdminHandler(manager.AdminOptions{Debug: true}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/informers", nil))
			var shown []struct {
				Name   string
				Shard  struct{ By, Reason string }
				Scopes []struct {
					Name  string
					Shard struct{ By string }
				}
			}
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &shown))
			require.Equal(t, "configmaps in scopes", shown[0].Name)
			require.Equal(t, by, shown[0].Shard.By)
			require.Equal(t, sharded, shown[0].Shard.Reason == "")
			require.Equal(t, by, shown[0].Scopes[1].Shard.By)

			events := status.Reflector.Counters.Events
			ranges.Follow(thirds[1].Minus(thirds[1][:1]))
			<-time.After(time.Minute)
			after := set.Status()
			require.Len(t, after.Scopes, 1)
			require.GreaterOrEqual(t, after.Shard.Dropped, status.Shard.Dropped, "a counter never decreases")
			require.GreaterOrEqual(t, after.Reflector.Counters.Events, events)
			require.GreaterOrEqual(t, after.Reflector.Counters.Lists, 2)
		})
	}
}

// TestScopesOfBadServers has ranges behind servers of every behaviour. The cache has exactly the objects of the ranges,
// and the log names each reason at most once in ten minutes, and not for each range.
func TestScopesOfBadServers(t *testing.T) {
	for n, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(uint64(n), 2))
				b.rand = rand.New(rand.NewPCG(uint64(n), 3))
				w.churn(random, configMaps, 80)
				set := scopes.New(configMaps, scopes.Options[*object]{})
				ranges := shardedsource.NewScopes(set, apiclient.NewPartial[*object](w.client(b), configMaps, ""), hashrange.UID, shardedsource.Options{Logger: w.logger})
				f := followed(w, set.Informer)
				w.Start(ranges.Run)
				w.Start(set.Run)
				for _, held := range []hashrange.Set{thirds[1], thirds[1].Union(thirds[0])} {
					ranges.Follow(held)
					<-time.After(time.Minute)
					w.churn(random, configMaps, 80)
					w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
					<-time.After(5 * time.Minute)
					w.churn(random, configMaps, 20)
					fixture.Pass(time.Minute)
					check(w, f, configMaps, hashrange.UID, held)
				}
				if b.expect == "" { // what the server does changes
					return
				}
				require.Equal(t, b.expect, set.Status().Shard.By)
				said := map[string]int{}
				for _, e := range w.log.FilterLevelExact(zapcore.WarnLevel).All() {
					said[fmt.Sprint(e.ContextMap()["err"])]++
				}
				require.Equal(t, b.expect == shardedsource.Client, len(said) > 0)
				for reason, times := range said {
					require.LessOrEqual(t, times, 2, "%s in 14 minutes", reason)
				}
			})
		})
	}
}

// TestScopesThatOverlap has a scope of all objects beside the ranges of a replica. The cache has all objects, and
// ranges that come and go change nothing.
func TestScopesThatOverlap(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(1, 3))
		w.churn(random, configMaps, 80)
		set := scopes.New(configMaps, scopes.Options[*object]{})
		source := apiclient.NewPartial[*object](w.client(nil), configMaps, "")
		require.NoError(t, set.Add(scopes.Scope[*object]{Source: source}))
		ranges := shardedsource.NewScopes(set, source, hashrange.UID, shardedsource.Options{})
		f := followed(w, set.Informer)
		w.Start(ranges.Run)
		w.Start(set.Run)
		for _, held := range []hashrange.Set{thirds[1], thirds[2], nil, thirds[0]} {
			ranges.Follow(held)
			<-time.After(time.Second)
			f.got.Take()
			<-time.After(time.Minute)
			require.Empty(t, f.got.Take())
			check(w, f, configMaps, hashrange.UID, hashrange.All())
			w.churn(random, configMaps, 40)
			<-time.After(time.Minute)
			check(w, f, configMaps, hashrange.UID, hashrange.All())
		}
	})
}
