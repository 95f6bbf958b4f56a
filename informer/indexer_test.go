package informer_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/informer"
)

func TestIndexerIsForTests(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		i := informer.New(s, options(t))
		bySize := informer.AddIndex(i, func(w *widget) []int { return []int{w.Size} })
		var r recorder
		subscribe(t, i, r.handle, informer.HandlerOptions{})
		put := func(w *widget) {
			txn := i.Indexer().Begin()
			txn.Set(w)
			txn.Commit(i.ResourceVersion())
		}
		put(&widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}, Size: 7})
		require.Equal(t, 1, bySize.Len(7), "without Run")
		defer running(t, i)()
		synctest.Wait()
		require.ElementsMatch(t, []string{"Added a 1 initial", "Added b 7 initial"}, r.take())
		require.Equal(t, 2, i.Cache().Len())
		put(&widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Size: 9})
		synctest.Wait()
		require.Empty(t, r.take(), "a write calls no handler")
		s.set("a", 2)
		synctest.Wait()
		require.Equal(t, []string{"Updated a 1→2"}, r.take(), "a change replaces what was written")
		require.Zero(t, bySize.Len(9))
	})
}
