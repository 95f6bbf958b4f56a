package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/cluster"
)

// writers is the number of concurrent writers. More writers would leave no processor time for the tests on two cores.
const writers = 8

// fill creates the objects object-0 to object-(n-1) with the labels that label returns. It returns when the watch cache
// of the API server has them all, because lists of any version read from it.
func (c *collection) fill(t *testing.T, n int, label func(int) labelSet) {
	t.Helper()
	var next atomic.Int64
	require.NoError(t, together(func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if _, err := c.create(t.Context(), objectName(i), label(i)); err != nil {
				return err
			}
		}
	}))
	require.NoError(t, eventually(t.Context(), func() error {
		items, err := c.items(t.Context(), url.Values{"resourceVersion": {"0"}})
		if err != nil {
			return err
		}
		return atLeast(n, len(items))
	}))
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i) }

func noLabels(int) labelSet { return nil }

// together runs f once for each writer, at the same time, and returns the errors.
func together(f func(writer int) error) error {
	var all sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		all.Go(func() { errs[w] = f(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// churner changes, deletes and creates again the objects of fill, in an order that its seed decides for each writer.
// Each writer has its own objects, so it knows which of them exist.
type churner struct {
	*collection
	objects int
	seed    uint64
	label   func(int) labelSet
	// tolerant continues after an error, which is necessary while servers are killed.
	tolerant bool
	pace     time.Duration // between two operations of a writer; 0 means no pause
	done     atomic.Int64  // operations that succeeded
	failed   atomic.Int64

	writers [writers]struct {
		random *rand.Rand
		absent map[int]bool // which of its objects do not exist
	}
}

// run makes a number of operations with all writers, or ends with ctx. It may be called again.
func (c *churner) run(ctx context.Context, operations int64) error {
	var tried atomic.Int64
	return together(func(writer int) error {
		w := &c.writers[writer]
		if w.random == nil {
			w.random, w.absent = rand.New(rand.NewPCG(c.seed, uint64(writer))), map[int]bool{}
		}
		for c.waitTurn(ctx) && tried.Add(1) <= operations {
			i := w.random.IntN(c.objects/writers)*writers + writer
			err := c.step(context.WithoutCancel(ctx), w.random, i, w.absent) // a started operation completes before run returns
			switch {
			case err == nil:
				c.done.Add(1)
			case !c.tolerant:
				return err
			default:
				c.failed.Add(1)
			}
		}
		return nil
	})
}

// waitTurn keeps the pace, and reports whether to continue.
func (c *churner) waitTurn(ctx context.Context) bool {
	if c.pace > 0 {
		timer := time.NewTimer(c.pace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// step makes one operation with object i. A failed operation may have succeeded on the server. A create that finds the
// object, or a change that does not, then corrects absent.
func (c *churner) step(ctx context.Context, random *rand.Rand, i int, absent map[int]bool) error {
	name := objectName(i)
	var err error
	switch {
	case absent[i]:
		_, err = c.create(ctx, name, c.label(random.IntN(c.objects)))
		if err == nil || c.tolerant && hasCode(err, http.StatusConflict) {
			delete(absent, i)
		}
	case random.IntN(4) == 0:
		err = c.delete(ctx, name)
		if err == nil || c.tolerant && hasCode(err, http.StatusNotFound) {
			absent[i] = true
		}
	case c.label(0) != nil && random.IntN(3) == 0:
		_, err = c.patch(ctx, name, map[string]any{"metadata": map[string]any{"labels": c.label(random.IntN(c.objects))}})
	default:
		_, err = c.annotate(ctx, name, strconv.Itoa(random.IntN(1000)))
	}
	if c.tolerant && hasCode(err, http.StatusNotFound) {
		absent[i] = true
	}
	return err
}

func hasCode(err error, code int) bool {
	var status *cluster.StatusError
	return errors.As(err, &status) && status.Code == code
}
