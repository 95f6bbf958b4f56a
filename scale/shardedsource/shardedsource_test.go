package shardedsource_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	configMaps = fixture.ConfigMaps
	widgets    = fixture.Widgets
)

// object is any object, with its data.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Data map[string]string `json:"data"`
}

// thirds are three disjoint sets that together have all hashes. The second has two ranges.
var thirds = [...]hashrange.Set{
	hashrange.NewSet(hashrange.Range{To: 0x5555 << 48}),
	hashrange.NewSet(hashrange.Range{From: 0x5555 << 48, To: 0x7777 << 48}, hashrange.Range{From: 0xaaaa << 48, To: 0xcccc << 48}),
	hashrange.NewSet(hashrange.Range{From: 0x7777 << 48, To: 0xaaaa << 48}, hashrange.Range{From: 0xcccc << 48}),
}

// behaviour is what stands between a client and a server that obeys: it changes shardSelectors and shardInfos.
type behaviour struct {
	name   string
	expect string // of a built-in type, at the end
	reason string // in the status
	// change changes the parameters of a request. It may answer it.
	change func(b *behaviour, q url.Values, watches bool) *http.Response
	// echo returns the selector of the shardInfo instead of got, which may be empty. asked is that of the
	// client.
	echo func(asked, got string) string

	mu   sync.Mutex
	rand *rand.Rand
	next http.RoundTripper
}

func ignore(_ *behaviour, q url.Values, _ bool) *http.Response {
	q.Del("shardSelector")
	return nil
}

func refuse(code int, reason metav1.StatusReason) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// otherCut replaces a selector by one of other hashes.
func otherCut(_ *behaviour, q url.Values, _ bool) *http.Response {
	if q.Get("shardSelector") != "" {
		q.Set("shardSelector", hashrange.NewSet(hashrange.Range{From: 1 << 62, To: 3 << 62}).Selector(hashrange.UID))
	}
	return nil
}

func asAsked(asked, _ string) string { return asked }

func behaviours() []*behaviour {
	return []*behaviour{
		{name: "obeys", expect: shardedsource.Server},
		{name: "ignores", expect: shardedsource.Client, reason: "ignores", change: ignore},
		{name: "obeys and does not say so", expect: shardedsource.Server, echo: func(_, _ string) string { return "" }},
		{name: "says that it obeys, and does not", expect: shardedsource.Client, reason: "other shard", change: ignore, echo: asAsked},
		{name: "says that it obeys, and has another hash", expect: shardedsource.Client, reason: "other shards", change: otherCut, echo: asAsked},
		{name: "cuts elsewhere", expect: shardedsource.Client, reason: "objects of other shards", change: otherCut},
		{name: "cuts elsewhere and does not say so", expect: shardedsource.Client, reason: "ignores", change: otherCut, echo: func(_, _ string) string { return "" }},
		{name: "says nonsense", expect: shardedsource.Client, reason: `its shardInfo is "nonsense"`, echo: func(_, _ string) string { return "nonsense" }},
		{name: "refuses", expect: shardedsource.Client, reason: "refuses", change: func(_ *behaviour, q url.Values, _ bool) *http.Response {
			if q.Has("shardSelector") {
				return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			}
			return nil
		}},
		{name: "refuses in watches", expect: shardedsource.Client, reason: "watch configmaps", change: func(_ *behaviour, q url.Values, watches bool) *http.Response {
			if q.Has("shardSelector") && watches {
				return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			}
			return nil
		}},
		{name: "obeys only in lists", change: func(_ *behaviour, q url.Values, watches bool) *http.Response {
			if watches {
				q.Del("shardSelector")
			}
			return nil
		}},
		{name: "is several servers", change: func(b *behaviour, q url.Values, _ bool) *http.Response {
			if b.rand.IntN(2) == 0 {
				q.Del("shardSelector")
			}
			return nil
		}},
	}
}

var shardInfo = regexp.MustCompile(`,?"shardInfo":\{"selector":"[^"]*"\}`)

func (b *behaviour) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	asked, watches := q.Get("shardSelector"), q.Has("watch")
	if b.change != nil {
		b.mu.Lock()
		answer := b.change(b, q, watches)
		b.mu.Unlock()
		if answer != nil {
			return answer, nil
		}
		req = req.Clone(req.Context())
		req.URL.RawQuery = q.Encode()
	}
	resp, err := b.next.RoundTrip(req)
	if err != nil || b.echo == nil || watches || asked == "" {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = shardInfo.ReplaceAll(body, nil)
	if selector := b.echo(asked, ""); selector != "" {
		body = bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"shardInfo":{"selector":"`+selector+`"},`), 1)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
	return resp, nil
}

// world is a server in a bubble, and a log.
type world struct {
	*fixture.Fixture
	log    *observer.ObservedLogs
	logger *zap.Logger
}

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, o testserver.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	fixture.Run(t, o, func(t *testing.T, f *fixture.Fixture) {
		core, log := observer.New(zapcore.InfoLevel)
		test(t, &world{f, log, zap.New(core)})
	})
}

// client returns a client whose server behaves as b, or obeys if b is nil.
func (w *world) client(b *behaviour) *apiclient.Client {
	if b == nil {
		return w.Client
	}
	return w.Connect(func(next http.RoundTripper) http.RoundTripper {
		b.next = next
		return b
	})
}

// churn makes changes.
func (w *world) churn(r *rand.Rand, resource api.Resource, n int) {
	for range n {
		key := api.Key{Namespace: fmt.Sprint(r.IntN(5), "-team"), Name: fmt.Sprint("o", r.IntN(30))}
		var err error
		switch _, missing := w.Server.Get(resource, key); {
		case missing != nil:
			_, err = w.Server.Create(resource, &object{ObjectMeta: fixture.Meta(key.Namespace, key.Name)})
		case r.IntN(3) == 0:
			err = w.Server.Delete(resource, key, metav1.DeleteOptions{})
		default:
			_, err = w.Server.Edit(resource, key, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, fmt.Sprint(r.Uint32()), "data", "x")
			})
		}
		require.NoError(w, err)
	}
}

// follower is an informer of a shard, and what its handler got.
type follower[T api.Object] struct {
	source *shardedsource.Source[T]
	*informer.Informer[T]
	got *fixture.History[T]
}

func follow[T api.Object](w *world, source *shardedsource.Source[T], o informer.Options[T]) *follower[T] {
	f := followed(w, informer.New(source, o))
	f.source, f.got.Copies = source, o.Hold != nil
	w.Start(f.Run)
	return f
}

func followed[T api.Object](w *world, i *informer.Informer[T]) *follower[T] {
	return &follower[T]{Informer: i, got: fixture.Follow(w, i.Subscribe, informer.HandlerOptions{})}
}

// check compares a follower with the objects of the server whose field has a hash in the set.
func check[T api.Object](w *world, f *follower[T], resource api.Resource, field hashrange.Field, hashes hashrange.Set) {
	w.Helper()
	want := map[api.Key]string{}
	all := must.Get(w.Server.List(resource, ""))(w)
	for _, u := range all {
		value := string(u.GetUID())
		if field == hashrange.Namespace {
			value = u.GetNamespace()
		}
		if hashes.Contains(hashrange.Hash(value)) {
			want[api.KeyOf(u)] = u.GetResourceVersion()
		}
	}
	got := map[api.Key]string{}
	for _, o := range f.Cache().List() {
		got[api.KeyOf(o)] = o.GetResourceVersion()
	}
	require.Equal(w, want, got)
	known := map[api.Key]string{}
	for key, o := range f.got.Objects() {
		known[key] = o.GetResourceVersion()
	}
	require.Equal(w, want, known)
}

// TestShardsAreTheCollection follows three shards behind servers of every behaviour, while objects and connections come
// and go. Each shard has exactly its objects, and together they have all.
func TestShardsAreTheCollection(t *testing.T) {
	for n := range behaviours() {
		for variant := range 8 {
			b := behaviours()[n]
			resource, field, paged := configMaps, hashrange.UID, variant&2 > 0
			if variant&1 > 0 {
				resource = widgets
			}
			if variant&4 > 0 {
				field = hashrange.Namespace
			}
			t.Run(fmt.Sprintf("%s, %s, %s, paged %v", b.name, resource.Plural, field, paged), func(t *testing.T) {
				t.Parallel()
				inWorld(t, testserver.Options{ShardedLists: true, History: 100}, func(t *testing.T, w *world) {
					r := rand.New(rand.NewPCG(uint64(n), uint64(variant)))
					b.rand = rand.New(rand.NewPCG(uint64(n), 7))
					client := w.client(b)
					w.churn(r, resource, 120)
					var followers []*follower[*object]
					for _, hashes := range thirds {
						source := shardedsource.New(apiclient.NewPartial[*object](client, resource, ""), field, hashes, shardedsource.Options{Logger: w.logger})
						o := informer.Options[*object]{}
						o.NoWatchList = paged
						if paged {
							o.PageSize = 20
						}
						followers = append(followers, follow(w, source, o))
					}
					for round := range 8 {
						w.churn(r, resource, 1+r.IntN(60))
						<-time.After(time.Duration(r.IntN(60)) * time.Second)
						switch round % 4 {
						case 1:
							w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
						case 2:
							w.Server.Inject(faults.Fault{Effect: faults.Compact{}})
							w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
						case 3:
							<-time.After(12 * time.Minute)
						}
					}
					fixture.Pass(5 * time.Minute)
					for i, f := range followers {
						check(w, f, resource, field, thirds[i])
						status := f.source.Shard()
						if resource == configMaps && b.expect != "" && field == hashrange.UID {
							require.Equal(t, b.expect, status.By, "%v", status.Reason)
							if b.reason != "" {
								require.ErrorContains(t, status.Reason, b.reason)
							}
						}
						if b.name == "obeys" {
							require.Zero(t, status.Dropped)
						}
					}
				})
			})
		}
	}
}

// TestStatusAndLog has a server that ignores the shardSelector. That is logged once, at the first list.
func TestStatusAndLog(t *testing.T) {
	inWorld(t, testserver.Options{}, func(t *testing.T, w *world) {
		source := shardedsource.New(apiclient.NewPartial[*object](w.client(nil), configMaps, ""), hashrange.UID, thirds[0], shardedsource.Options{Logger: w.logger})
		list := func() (n int) {
			must.Get(source.List(t.Context(), api.Options[*object]{}, func(*object) error { n++; return nil }))(t)
			return n
		}
		require.Zero(t, list())
		require.Equal(t, informer.ShardStatus{By: shardedsource.Undecided}, source.Shard(), "there are no objects")
		w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 50)
		kept := list()
		require.Equal(t, kept, list())
		all := must.Get(w.Server.List(configMaps, ""))(t)
		s := source.Shard()
		require.Equal(t, "client", s.By)
		require.False(t, s.Since.IsZero())
		require.ErrorContains(t, s.Reason, "ShardedListAndWatch")
		require.EqualValues(t, 2*(len(all)-kept), s.Dropped)
		require.Len(t, w.log.All(), 1)
		require.Equal(t, "configmaps", w.log.All()[0].ContextMap()["resource"])
		for _, r := range w.Server.Requests()[3:] {
			if r.Query.Get("limit") == "" {
				require.Empty(t, r.Query.Get("shardSelector"), "a server that ignores it does not get it")
			}
		}
	})
}

// TestAWatchThatResumesAsksAgain has informers that list once, and whose watches resume for hours.
func TestAWatchThatResumesAsksAgain(t *testing.T) {
	for _, paged := range []bool{false, true} {
		var o informer.Options[*object]
		o.NoWatchList = paged
		t.Run(fmt.Sprintf("a collection that is empty at first, paged %v", paged), func(t *testing.T) {
			inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
				b := &behaviour{echo: func(_, _ string) string { return "" }} // it does not say that it obeys
				f := follow(w, shardedsource.New(apiclient.NewPartial[*object](w.client(b), configMaps, ""), hashrange.UID, thirds[0], shardedsource.Options{}), o)
				<-f.Synced()
				require.Equal(t, shardedsource.Undecided, f.source.Shard().By)
				w.churn(rand.New(rand.NewPCG(2, 1)), configMaps, 100)
				<-time.After(time.Hour)
				require.Equal(t, shardedsource.Server, f.source.Shard().By)
				dropped := f.source.Shard().Dropped
				w.churn(rand.New(rand.NewPCG(3, 1)), configMaps, 100)
				<-time.After(time.Hour)
				require.Equal(t, dropped, f.source.Shard().Dropped)
				check(w, f, configMaps, hashrange.UID, thirds[0])
			})
		})
		t.Run(fmt.Sprintf("a server that garbles for a while, paged %v", paged), func(t *testing.T) {
			inWorld(t, testserver.Options{ShardedLists: true}, func(t *testing.T, w *world) {
				w.churn(rand.New(rand.NewPCG(2, 1)), configMaps, 100)
				var broken, probes atomic.Int32
				b := &behaviour{change: func(_ *behaviour, q url.Values, _ bool) *http.Response {
					if broken.Load() == 0 {
						return nil
					}
					if q.Has("shardSelector") {
						probes.Add(1)
					}
					if broken.Load() == 2 && q.Get("limit") == "1" {
						return refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
					}
					q.Del("shardSelector")
					return nil
				}}
				f := follow(w, shardedsource.New(apiclient.NewPartial[*object](w.client(b), configMaps, ""), hashrange.UID, thirds[0], shardedsource.Options{}), o)
				<-f.Synced()
				synctest.Wait() // the watch is connected
				require.Equal(t, shardedsource.Server, f.source.Shard().By)
				broken.Store(1)
				w.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
				<-time.After(time.Minute)
				w.churn(rand.New(rand.NewPCG(3, 1)), configMaps, 50)
				<-time.After(5 * time.Minute)
				require.Equal(t, shardedsource.Client, f.source.Shard().By)
				require.ErrorIs(t, f.source.Shard().Reason, shardedsource.ErrGarbled)
				probes.Store(0)
				<-time.After(2 * time.Hour)
				require.Equal(t, shardedsource.Client, f.source.Shard().By)
				require.NotZero(t, probes.Load())
				require.LessOrEqual(t, probes.Load(), int32(12), "at most one in ten minutes")

				broken.Store(2) // the watch goes on without an answer to the question
				<-time.After(time.Hour)
				w.churn(rand.New(rand.NewPCG(4, 1)), configMaps, 50)
				<-time.After(time.Second)
				check(w, f, configMaps, hashrange.UID, thirds[0])

				broken.Store(0)
				<-time.After(time.Hour)
				require.Equal(t, shardedsource.Server, f.source.Shard().By)
				w.churn(rand.New(rand.NewPCG(5, 1)), configMaps, 50)
				synctest.Wait()
				check(w, f, configMaps, hashrange.UID, thirds[0])
			})
		})
	}
}

// TestWithoutLists has a user who may watch only.
func TestWithoutLists(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true, Authorize: func(r testserver.Request) error {
		if r.Verb == "list" {
			return errors.New("no lists")
		}
		return nil
	}}, func(t *testing.T, w *world) {
		w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 50)
		f := follow(w, shardedsource.New(apiclient.NewPartial[*object](w.client(nil), configMaps, ""), hashrange.UID, thirds[0], shardedsource.Options{}), informer.Options[*object]{})
		<-f.Synced()
		w.churn(rand.New(rand.NewPCG(2, 1)), configMaps, 50)
		synctest.Wait()
		check(w, f, configMaps, hashrange.UID, thirds[0])
		require.ErrorContains(t, f.source.Shard().Reason, "no list shows whether the server obeys")
	})
}

// decoding hides everything of a client except what a source must have, so that its objects are decoded.
type decoding struct{ api.ListerWatcher[*object] }

func (d decoding) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	return d.ListerWatcher.(*apiclient.PartialClient[*object]).Metadata()
}

// plainly is a coding that changes nothing.
func plainly([][]byte) (encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error), err error) {
	return func(dst, src []byte) []byte { return append(dst, src...) },
		func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }, nil
}

// TestPackedAndChecked keeps a shard as bytes, and compares it with lists of metadata.
func TestPackedAndChecked(t *testing.T) {
	for n := range 8 {
		sharded := n&1 == 0
		inWorld(t, testserver.Options{ShardedLists: sharded}, func(t *testing.T, w *world) {
			w.churn(rand.New(rand.NewPCG(1, 1)), configMaps, 100)
			var from api.ListerWatcher[*object] = apiclient.NewPartial[*object](w.client(nil), configMaps, "")
			if n&2 != 0 {
				from = decoding{from}
			}
			source := shardedsource.New(from, hashrange.UID, thirds[1], shardedsource.Options{})
			o := informer.Options[*object]{Hold: packed.Bytes[*object](), Check: driftcheck.Every(time.Minute)}
			if n&4 != 0 {
				o.Hold = packed.Coded[*object](plainly)
			}
			f := follow(w, source, o)
			<-f.Synced()
			w.churn(rand.New(rand.NewPCG(2, 1)), configMaps, 100)
			<-time.After(10 * time.Minute)
			check(w, f, configMaps, hashrange.UID, thirds[1])
			require.Greater(t, f.Status().Check.Checks, 3)
			require.Zero(t, f.Status().Check.Missed)
			require.NoError(t, f.Status().Check.Err)
			require.Equal(t, sharded, source.Shard().By == shardedsource.Server)
			require.Equal(t, source.Shard(), f.Status().Shard)
		})
	}
}

// fake is a source that is not an API server. It has one object.
type fake struct {
	api.ListerWatcher[*object]
	object *object
}

func (fake) Collection() api.Collection { return api.Collection{Resource: configMaps} }

func (f fake) List(_ context.Context, _ api.Options[*object], each func(*object) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{ResourceVersion: "1"}, each(f.object)
}

// TestOtherSources has a source that knows neither shardSelector nor Keep, and objects without a UID.
func TestOtherSources(t *testing.T) {
	o := &object{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
	list := func(hashes hashrange.Set) (n int, err error) {
		source := shardedsource.New(fake{object: o}, hashrange.UID, hashes, shardedsource.Options{})
		require.Nil(t, source.Metadata())
		require.Nil(t, source.Packed(nil))
		require.Empty(t, source.Collection().Namespace)
		require.Equal(t, hashes.Contains(hashrange.Hash("u")), source.Selects(&object{ObjectMeta: metav1.ObjectMeta{UID: "u"}}))
		_, err = source.List(t.Context(), api.Options[*object]{}, func(*object) error { n++; return nil })
		return n, err
	}
	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
	total := 0
	for _, hashes := range []hashrange.Set{half, hashrange.All().Minus(half), hashrange.All()} {
		n := must.Get(list(hashes))(t)
		total += n
	}
	require.Equal(t, 2, total)
	o.UID = ""
	_, err := list(half)
	require.ErrorContains(t, err, "an object without metadata.uid; the type of the objects must keep it: *shardedsource_test.object a")
	for _, wrong := range []func(){
		func() { shardedsource.New[*object](nil, hashrange.UID, half, shardedsource.Options{}) },
		func() { shardedsource.New(fake{}, "object.metadata.name", half, shardedsource.Options{}) },
		func() { shardedsource.New(fake{}, hashrange.UID, nil, shardedsource.Options{}) },
	} {
		require.Panics(t, wrong)
	}
}

// TestWritesToOtherShards creates objects with a cached client. Reads see those of the shard at once, and not those of
// other shards.
func TestWritesToOtherShards(t *testing.T) {
	inWorld(t, testserver.Options{ShardedLists: true, BookmarkInterval: -1}, func(t *testing.T, w *world) {
		client := apiclient.NewTyped[*object](w.client(nil), configMaps, "default")
		f := follow(w, shardedsource.New(client, hashrange.UID, thirds[0], shardedsource.Options{}), informer.Options[*object]{})
		cached := cachedclient.NewTyped(client, f.Informer, cachedclient.Options{Overlay: true})
		<-f.Synced()
		started := time.Now()
		for n := range 20 {
			o := must.Get(cached.Create(t.Context(), &object{ObjectMeta: fixture.Meta("default", fmt.Sprint("m", n))}, metav1.CreateOptions{}))(t)
			list := must.Get(cached.List(t.Context(), cachedclient.ListOptions{}))(t)
			found := slices.ContainsFunc(list.Items, func(i *object) bool { return i.UID == o.UID })
			require.Equal(t, f.source.Selects(o), found)
		}
		require.Zero(t, time.Since(started))
	})
}
