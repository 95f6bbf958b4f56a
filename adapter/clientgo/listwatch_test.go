package clientgo_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
)

// running runs an informer in a bubble and returns a function that stops it.
func running(i cache.SharedIndexInformer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(klog.NewContext(ctx, klog.Logger{}))
	}()
	synctest.Wait()
	return func() {
		cancel()
		<-ended
	}
}

// A fake clientset sends no versions and ignores selectors in watches, as its users expect.
func TestFakeClientset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientset := fake.NewClientset(pod("a"))
		api := clientset.CoreV1().Pods(metav1.NamespaceAll)
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return api.Watch(ctx, o)
			},
		}, clientset)
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		var r recorder
		mustAdd(t, i, &r)
		defer running(i)()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a initial=true"}, r.take())

		must.Get(clientset.CoreV1().Pods("default").Create(t.Context(), pod("b"), metav1.CreateOptions{}))(t)
		must.Get(clientset.CoreV1().Pods("default").Update(t.Context(), pod("a", "web"), metav1.UpdateOptions{}))(t)
		synctest.Wait()
		require.Equal(t, []string{"add b initial=false", "update a"}, r.take())
		require.NoError(t, clientset.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, []string{"delete a"}, r.take())

		lister := listers.NewPodLister(i.GetIndexer())
		b := must.Get(lister.Pods("default").Get("b"))(t)
		require.Equal(t, "b", b.Name)
		require.True(t, apierrors.IsNotFound(must.Err(lister.Pods("default").Get("a"))))
	})
}

// client-go's own fake source, with a broken watch whose events are lost.
func TestWatchDisruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewFakeControllerSource()
		defer source.Shutdown()
		meta := func(name, version string) *corev1.Pod {
			p := pod(name)
			p.UID, p.ResourceVersion = "uid-of-"+p.UID, version
			return p
		}
		source.Add(meta("a", "1"))
		source.Add(meta("b", "2"))
		i := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		var r recorder
		mustAdd(t, i, &r)
		defer running(i)()
		require.Equal(t, []string{"add a initial=true", "add b initial=true"}, r.take())
		source.AddDropWatch(meta("c", "3"))
		source.ModifyDropWatch(meta("b", "4"))
		source.DeleteDropWatch(meta("a", "5"))
		synctest.Wait()
		require.Empty(t, r.take())
		source.ResetWatch()
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"add c initial=false", "tombstone default/a a", "update b"}, r.take())
	})
}

// scripted is a list/watcher without contexts that answers from functions.
type scripted struct {
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
}

func (s *scripted) List(o metav1.ListOptions) (runtime.Object, error)   { return s.list(o) }
func (s *scripted) Watch(o metav1.ListOptions) (watch.Interface, error) { return s.watch(o) }

// listOf returns a list function.
func listOf(pods ...*corev1.Pod) func(metav1.ListOptions) (runtime.Object, error) {
	return func(metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
		for _, p := range pods {
			list.Items = append(list.Items, *p)
		}
		return list, nil
	}
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		lw := &scripted{list: listOf(pod("a")), watch: func(o metav1.ListOptions) (watch.Interface, error) {
			require.True(t, o.AllowWatchBookmarks)
			require.Nil(t, o.SendInitialEvents, "it does not say that it supports WatchLists")
			require.Equal(t, "10", o.ResourceVersion)
			return events, nil
		}}
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		var r recorder
		mustAdd(t, i, &r)
		defer running(i)()
		r.take()

		bookmark := &corev1.Pod{}
		bookmark.ResourceVersion = "11"
		events.Action(watch.Bookmark, bookmark)
		synctest.Wait()
		require.Equal(t, "11", i.LastSyncResourceVersion())

		events.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "12"}}) // of another type
		b := pod("b")
		b.ResourceVersion = "13"
		events.Add(b)
		synctest.Wait()
		require.Equal(t, []string{"add b initial=false"}, r.take())
		require.Equal(t, "13", i.LastSyncResourceVersion())
		require.Equal(t, 1, i.(interface{ Status() informer.Status }).Status().Undecodable)
	})
}

func TestFailures(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old").Status()
	closed := watch.NewFake()
	closed.Stop()
	for name, c := range map[string]struct {
		scripted
		want string
	}{
		"the list fails":       {scripted{list: func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("no list") }}, "no list"},
		"the list is no list":  {scripted{list: func(metav1.ListOptions) (runtime.Object, error) { return &corev1.Pod{}, nil }}, "*v1.Pod"},
		"an item has no meta":  {scripted{list: func(metav1.ListOptions) (runtime.Object, error) { return statuses(), nil }}, "no metadata"},
		"the watch fails":      {scripted{listOf(), func(metav1.ListOptions) (watch.Interface, error) { return nil, errors.New("no watch") }}, "no watch"},
		"there is no watch":    {scripted{listOf(), func(metav1.ListOptions) (watch.Interface, error) { return nil, nil }}, "returned no watch"},
		"the watch ends early": {scripted{listOf(), func(metav1.ListOptions) (watch.Interface, error) { return closed, nil }}, "too early"},
		"an error event": {scripted{listOf(), func(metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Error(&gone)
			return w, nil
		}}, "too old"},
		"a bookmark without metadata": {scripted{listOf(), func(metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Action(watch.Bookmark, &gone)
			return w, nil
		}}, "bookmark without metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := clientgo.NewSharedIndexInformer(&c.scripted, &corev1.Pod{}, 0, nil)
				errs := make(chan error, 100)
				require.NoError(t, i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
					select {
					case errs <- err:
					default:
					}
				}))
				defer running(i)()
				require.ErrorContains(t, <-errs, c.want)
			})
		})
	}
}

// statuses returns a list whose items have no metadata of an object.
func statuses() runtime.Object { return &statusList{Items: []metav1.Status{{Code: http.StatusTeapot}}} }

type statusList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []metav1.Status
}

func (l *statusList) DeepCopyObject() runtime.Object { c := *l; return &c }

// As in client-go, an informer that starts after its stop does not call the list/watcher.
func TestRunAfterTheStopCallsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			t.Error("the source was listed")
			return &corev1.PodList{}, nil
		}}
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		stopped := make(chan struct{})
		close(stopped)
		i.Run(stopped)
		require.True(t, i.IsStopped())
		synctest.Wait()
	})
}

// A list/watcher that knows no context may block forever. Run does not wait for it.
func TestRunDoesNotWaitForABlockedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, returned := make(chan struct{}), make(chan struct{})
		lw := &scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			defer close(returned)
			<-release
			return &corev1.PodList{}, nil
		}}
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		stop := running(i)
		stop()
		require.True(t, i.IsStopped())
		require.False(t, i.HasSynced())
		close(release)
		<-returned
	})
}

// A watch that opens after Run has ended is stopped.
func TestALateWatchIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := watch.NewFake()
		lw := &scripted{list: listOf(), watch: func(metav1.ListOptions) (watch.Interface, error) {
			<-release
			return late, nil
		}}
		running(clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil))()
		close(release)
		synctest.Wait()
		require.True(t, late.IsStopped())
	})
}

func TestWatchListNeedsASourceThatSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []metav1.ListOptions
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) { return listOf()(o) },
			WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				requests = append(requests, o)
				w := watch.NewFakeWithChanSize(2, false)
				a, end := pod("a"), &corev1.Pod{}
				end.ResourceVersion, end.Annotations = "20", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				w.Add(a)
				w.Action(watch.Bookmark, end)
				return w, nil
			},
		}, struct{}{})
		i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		defer running(i)()
		require.True(t, i.HasSynced())
		require.Equal(t, "20", i.LastSyncResourceVersion())
		require.Len(t, requests, 1)
		require.True(t, *requests[0].SendInitialEvents)
	})
}
