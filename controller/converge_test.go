package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// mirror keeps a copy of each original, with the same name and Spec; it owns the copy. It fails now and then.
type mirror struct {
	originals, copies cache.Reader[*thing]
	server            *collection      // of the copies
	unlucky           func(n int) bool // reports true once in n times, until the end of the test
}

func (m *mirror) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	linger(time.Duration(rand.IntN(20)) * time.Millisecond)
	if m.unlucky(20) {
		panic("a bug")
	}
	if m.unlucky(10) || ctx.Err() != nil {
		return controller.Result{}, errors.New("no luck")
	}
	original, wanted := m.originals.Get(key)
	copied, exists := m.copies.Get(key)
	switch {
	case !wanted && exists:
		m.server.delete(key.Name)
	case wanted && (!exists || copied.Spec != original.Spec || copied.OwnerReferences[0].UID != original.UID):
		want := ownedBy(key.Name, original)
		want.Spec = original.Spec
		m.server.apply(want)
	}
	return controller.Result{}, nil
}

// TestConvergence changes originals, damages copies, loses history and restarts the controller. At the end, every
// original has its copy.
func TestConvergence(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converge(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func converge(t *testing.T, r *rand.Rand) {
	c := new(cluster)
	originals, copies := c.collection(owners), c.collection(things)
	above, below := originals.running(t), copies.running(t)
	var quiet atomic.Bool
	run := func() (stop func() error) {
		m := &mirror{originals: above.Cache(), copies: below.Cache(), server: copies}
		m.unlucky = func(n int) bool { return !quiet.Load() && rand.IntN(n) == 0 }
		ctl := controller.New("mirror", m, controller.Options{Workers: 3, Queue: workqueue.Options{Backoff: workqueue.Backoff{Max: time.Minute}}})
		ctl.Watch(controller.For(above))
		ctl.Watch(controller.Owns(above, below))
		return start(t, ctl.Run)
	}
	stop := run()
	for range 300 {
		name := fmt.Sprint("o", r.IntN(10))
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			original := named(name)
			original.Spec = fmt.Sprint("spec ", r.IntN(5))
			originals.apply(original)
		case 4, 5:
			originals.delete(name)
		case 6, 7:
			// A copy that no watch delivered may disappear without an event too: a watch does not show objects that
			// came and went in a gap, so no event would reach the owner.
			if seen, exists := below.Cache().Get(keyOf(name)); exists && seen == copies.snapshot()[keyOf(name)] {
				copies.delete(name)
			}
		case 8:
			if stranger, exists := copies.snapshot()[keyOf(name)]; exists {
				spoilt := api.Clone(stranger)
				spoilt.Spec = "spoilt"
				copies.apply(spoilt)
			}
		case 9:
			[]*collection{originals, copies}[r.IntN(2)].forgetHistory()
		case 10:
			broken := []*collection{originals, copies}[r.IntN(2)]
			broken.fail(errors.New("nobody gets through"))
			time.AfterFunc(time.Duration(r.IntN(3000))*time.Millisecond, func() { broken.fail(nil) })
		case 11:
			if r.IntN(4) == 0 {
				require.NoError(t, stop())
				stop = run()
			}
		}
		pass(time.Duration(r.IntN(100)) * time.Millisecond)
	}
	quiet.Store(true)
	pass(time.Hour)
	require.Equal(t, specs(originals), specs(copies))
	for key, copied := range copies.snapshot() {
		require.Equal(t, originals.snapshot()[key].UID, copied.OwnerReferences[0].UID)
	}
}

func specs(c *collection) map[api.Key]string {
	all := map[api.Key]string{}
	for key, object := range c.snapshot() {
		all[key] = object.Spec
	}
	return all
}
