package livepage_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/testserver/faults"
)

// TestMemoryDoesNotGrow has a viewer that requests the state every second, for an hour, while an object changes.
func TestMemoryDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := newPage(t, livepage.Options{}), newWorld(t)
		w.create("one")
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		w.Start(maps.Run)
		var heaps []uint64
		for n := range 3600 {
			<-time.After(time.Second)
			w.set(t, "one", fmt.Sprint(n))
			require.Equal(t, http.StatusOK, send(p, true, http.MethodGet, "/state").Code)
			if n%1200 == 1199 {
				w.Server.Inject(faults.Fault{Effect: faults.Compact{}}) // the history of the server
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				heaps = append(heaps, m.HeapAlloc)
			}
		}
		require.Less(t, heaps[2], heaps[0]+heaps[0]/50+500_000)
	})
}
