package expectations_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/reconcile/expectations"
)

func TestSlowStart(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		n       int
		fail    map[int]bool
		batches []int // how many calls begin at once, batch by batch
		want    int
	}{
		"none":                 {0, nil, nil, 0},
		"one":                  {1, nil, []int{1}, 1},
		"many":                 {12, nil, []int{1, 2, 4, 5}, 12},
		"the first fails":      {500, map[int]bool{0: true}, []int{1}, 0},
		"one in a batch fails": {500, map[int]bool{4: true}, []int{1, 2, 4}, 6},
		"all of a batch fail":  {500, map[int]bool{1: true, 2: true}, []int{1, 2}, 1},
		"the last fails":       {8, map[int]bool{7: true}, []int{1, 2, 4, 1}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				began := map[time.Time]int{}
				var order []time.Time
				got, err := expectations.SlowStart(t.Context(), c.n, func(_ context.Context, i int) error {
					mu.Lock()
					if began[time.Now()]++; began[time.Now()] == 1 {
						order = append(order, time.Now())
					}
					mu.Unlock()
					<-time.After(time.Second)
					if c.fail[i] {
						return refused
					}
					return nil
				})
				require.Equal(t, c.want, got)
				require.Equal(t, len(c.fail) > 0, errors.Is(err, refused), "%v", err)
				var batches []int
				for _, at := range order {
					batches = append(batches, began[at])
				}
				require.Equal(t, c.batches, batches)
			})
		})
	}
}

func TestSlowStartEndsWithItsContext(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	got, err := expectations.SlowStart(ctx, 100, func(_ context.Context, i int) error {
		if i == 2 {
			cancel(gone)
		}
		return nil
	})
	require.Equal(t, 3, got)
	require.ErrorIs(t, err, gone)
}

func TestSlowStartPassesPanicsOn(t *testing.T) {
	ended := make(chan struct{})
	defer func() {
		p, ok := recover().(*expectations.Panic)
		require.True(t, ok)
		require.Equal(t, "no", p.Value)
		require.Contains(t, p.String(), "slowstart_test.go")
		select {
		case <-ended:
		default:
			t.Error("SlowStart did not wait for the other call")
		}
	}()
	_, _ = expectations.SlowStart(t.Context(), 10, func(_ context.Context, i int) error {
		switch i {
		case 1:
			<-time.After(10 * time.Millisecond)
			close(ended)
		case 2:
			panic("no")
		case 3:
			t.Error("a batch began after one in which a call panicked")
		}
		return nil
	})
	t.Error("SlowStart returned")
}
