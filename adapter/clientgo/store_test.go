package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
)

// stores runs a test with the store of leat and with that of client-go, which must behave alike.
func stores(t *testing.T, test func(t *testing.T, s cache.Indexer)) {
	indexers := func() cache.Indexers {
		return cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
			"app":                func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Labels["app"]}, nil },
			"letters": func(obj any) ([]string, error) {
				letters := []string{}
				for _, r := range obj.(*corev1.Pod).Name {
					letters = append(letters, string(r))
				}
				return letters, nil
			},
		}
	}
	t.Run("leat", func(t *testing.T) {
		test(t, clientgo.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, indexers()).GetIndexer())
	})
	t.Run("client-go", func(t *testing.T) {
		test(t, cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, indexers()).GetIndexer())
	})
}

func names(list []any) []string {
	all := []string{}
	for _, obj := range list {
		all = append(all, name(obj))
	}
	slices.Sort(all)
	return all
}

func TestStores(t *testing.T) {
	stores(t, func(t *testing.T, s cache.Indexer) {
		require.Empty(t, s.List())
		require.Empty(t, s.ListKeys())
		require.Empty(t, s.LastStoreSyncResourceVersion())
		for _, p := range []*corev1.Pod{pod("ab", "web"), pod("bc", "web"), pod("d", "db")} {
			require.NoError(t, s.Add(p))
		}
		require.NoError(t, s.Update(pod("d", "cache")))
		require.Equal(t, []string{"ab", "bc", "d"}, names(s.List()))
		require.Equal(t, []string{"default/ab", "default/bc", "default/d"}, keys(s))

		item, exists, err := s.Get(pod("d"))
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "cache", item.(*corev1.Pod).Labels["app"])
		item, exists, err = s.Get(cache.ExplicitKey("default/ab"))
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "ab", name(item))
		for _, missing := range []string{"default/x", "x", "", "a/b/c", "/"} {
			item, exists, err = s.GetByKey(missing)
			require.NoError(t, err, missing)
			require.False(t, exists, missing)
			require.Nil(t, item, missing)
		}
		_, _, err = s.Get("no object")
		var keyError cache.KeyError
		require.ErrorAs(t, err, &keyError)

		require.NoError(t, s.Delete(pod("ab")))
		require.NoError(t, s.Delete(pod("ab")), "again")
		require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: "default/bc", Obj: pod("bc")}))
		require.ErrorAs(t, s.Delete("no object"), &keyError)
		require.ErrorAs(t, s.Add("no object"), &keyError)
		require.Equal(t, []string{"d"}, names(s.List()))

		require.NoError(t, s.Replace([]any{pod("x"), pod("y")}, "42"))
		require.Equal(t, []string{"x", "y"}, names(s.List()))
		require.Equal(t, "42", s.LastStoreSyncResourceVersion())
		s.Bookmark("43")
		require.Equal(t, "43", s.LastStoreSyncResourceVersion())
		require.NoError(t, s.Resync())
	})
}

func TestIndexes(t *testing.T) {
	stores(t, func(t *testing.T, s cache.Indexer) {
		for _, p := range []*corev1.Pod{pod("ab", "web"), pod("bc", "web"), pod("d", "db")} {
			require.NoError(t, s.Add(p))
		}
		list := must.Get(s.ByIndex("app", "web"))(t)
		require.Equal(t, []string{"ab", "bc"}, names(list))
		list = must.Get(s.ByIndex("app", "none"))(t)
		require.Empty(t, list)
		list = must.Get(s.Index("app", pod("z", "db")))(t)
		require.Equal(t, []string{"d"}, names(list))
		list = must.Get(s.Index("letters", pod("abd")))(t)
		require.Equal(t, []string{"ab", "bc", "d"}, names(list), "each once")
		indexed := must.Get(s.IndexKeys("letters", "b"))(t)
		require.Equal(t, []string{"default/ab", "default/bc"}, indexed)
		values := s.ListIndexFuncValues("app")
		slices.Sort(values)
		require.Equal(t, []string{"db", "web"}, values)

		require.ErrorContains(t, must.Err(s.ByIndex("none", "x")), "Index with name none does not exist")
		require.ErrorContains(t, must.Err(s.Index("none", pod("x"))), "Index with name none does not exist")
		require.ErrorContains(t, must.Err(s.IndexKeys("none", "x")), "Index with name none does not exist")
		require.Empty(t, s.ListIndexFuncValues("none"))

		require.Error(t, s.AddIndexers(cache.Indexers{"app": cache.MetaNamespaceIndexFunc, "new": cache.MetaNamespaceIndexFunc}))
		require.NotContains(t, s.GetIndexers(), "new", "all or nothing")
		require.NoError(t, s.AddIndexers(cache.Indexers{"late": func(obj any) ([]string, error) { return []string{name(obj)}, nil }}))
		list = must.Get(s.ByIndex("late", "d"))(t)
		require.Equal(t, []string{"d"}, names(list))
		require.Contains(t, s.GetIndexers(), "late")
	})
}

func TestTransactions(t *testing.T) {
	stores(t, func(t *testing.T, s cache.Indexer) {
		require.NoError(t, s.Add(pod("old")))
		txn, ok := s.(cache.TransactionStore)
		require.True(t, ok)
		require.Nil(t, txn.Transaction(
			cache.Transaction{Type: cache.TransactionTypeAdd, Object: pod("a")},
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("a", "web")},
			cache.Transaction{Type: cache.TransactionTypeDelete, Object: pod("old")},
		))
		require.Equal(t, []string{"a"}, names(s.List()))
		err := txn.Transaction(
			cache.Transaction{Type: cache.TransactionTypeAdd, Object: "no object"},
			cache.Transaction{Type: cache.TransactionTypeAdd, Object: pod("b")},
		)
		require.NotNil(t, err)
		require.Equal(t, []int{1}, err.SuccessfulIndices)
		require.Len(t, err.Errors, 1)
		require.Equal(t, []string{"a", "b"}, names(s.List()))
	})
}

func TestAFailedIndexFunctionLeavesTheObjectOut(t *testing.T) {
	var logged []string
	handlers := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = handlers }()
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, message string, more ...any) {
		logged = append(logged, fmt.Sprintln(append([]any{message, err}, more...)...))
	}}
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{Indexers: cache.Indexers{"fails": func(obj any) ([]string, error) {
			if name(obj) == "a" {
				return nil, errors.New("no")
			}
			return []string{"x"}, nil
		}}})
		start(k, i)
		list := must.Get(i.GetIndexer().ByIndex("fails", "x"))(k)
		require.Equal(k, []string{"b"}, names(list))
		require.Error(k, must.Err(i.GetIndexer().Index("fails", pod("a"))))
		require.Len(k, i.GetStore().List(), 2)
		testkit.Edit(k, pods, key("a"), func(p *corev1.Pod) { p.Labels = nil })
	})
	require.Equal(t, []string{"An index lacks an object the index function failed: no index fails object default/a\n"}, logged)
}

// Tests write to the store of an informer that runs, or that never runs.
func TestWritesCallNoHandler(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		var r recorder
		mustAdd(k.T, i, &r)
		start(k, i)
		r.take()
		require.NoError(k, i.GetStore().Add(pod("c")))
		k.Idle()
		require.Empty(k, r.take())
		require.Equal(k, []string{"default/a", "default/b", "default/c"}, keys(i.GetStore()))
	})
}
