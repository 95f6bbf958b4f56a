package informer_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

func TestTraceOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		i := informer.New(src, informer.Options[*widget]{Handling: informer.Handling{ResyncPeriod: time.Minute}})
		a := api.Key{Namespace: "default", Name: "a"}
		var seen []informer.TracedChange
		stop := i.Trace(informer.Trace{Wanted: func(key api.Key) bool { return key == a }, Change: func(c informer.TracedChange) {
			if c.Type != api.Deleted {
				object, cached := i.Lookup(a)
				require.True(t, cached)
				require.Same(t, object, c.Object, "the change is in the cache")
			}
			seen = append(seen, c)
		}})
		defer running(t, i)()
		synctest.Wait()
		<-time.After(2 * time.Minute) // resyncs
		src.set("b", 1)
		src.set("a", 2)
		synctest.Wait()
		require.ElementsMatch(t, []string{"a", "b"}, names(i))
		src.remove("a")
		synctest.Wait()
		_, cached := i.Lookup(a)
		require.False(t, cached)
		require.Len(t, seen, 3)
		require.True(t, seen[0].InitialList)
		require.Nil(t, seen[0].Old)
		require.Equal(t, api.Updated, seen[1].Type)
		require.Same(t, seen[0].Object, seen[1].Old)
		require.Equal(t, api.Deleted, seen[2].Type)
		stop()
		src.set("a", 3)
		synctest.Wait()
		require.Len(t, seen, 3)
	})
}

func names(i *informer.Informer[*widget]) (all []string) {
	for _, key := range slices.Collect(i.Keys()) {
		all = append(all, key.Name)
	}
	return all
}
