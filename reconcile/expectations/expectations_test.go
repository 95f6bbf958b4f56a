package expectations_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/reconcile/expectations"
)

func TestRules(t *testing.T) {
	e := expectations.New[string](expectations.Options{})
	require.True(t, e.Satisfied("a"), "there are no expectations")
	e.Created("a", 1)
	e.Deleted("a", "u")
	require.True(t, e.Satisfied("a"))

	e.Expect("a", 2, "x", "y")
	require.False(t, e.Satisfied("a"))
	require.True(t, e.Satisfied("b"))
	e.Created("a", 2)
	require.False(t, e.Satisfied("a"), "the deletes are still expected")
	e.Deleted("a", "x")
	e.Deleted("a", "y")
	require.True(t, e.Satisfied("a"))

	e.Expect("a", 1)
	e.Created("a", 3)
	require.True(t, e.Satisfied("a"), "more creations came than expected")
	e.Expect("a", 1)
	require.False(t, e.Satisfied("a"), "earlier surplus creations count for new expectations")

	e.Expect("a", 5, "x")
	e.Expect("a", 1)
	e.Created("a", 1)
	require.True(t, e.Satisfied("a"), "the second did not replace the first")

	e.Expect("a", 1)
	e.Raise("a", 1, "x")
	e.Created("a", 1)
	e.Deleted("a", "x")
	require.False(t, e.Satisfied("a"))
	require.True(t, e.Satisfied("b"))
	e.Forget("a")
	require.True(t, e.Satisfied("a"))

	e.Expect("a", 0)
	require.True(t, e.Satisfied("a"))
	e.Expect("a", -3, "x")
	e.Deleted("a", "x")
	require.True(t, e.Satisfied("a"))
	e.Expect("a", 1)
	e.Created("a", -1)
	require.False(t, e.Satisfied("a"))
}

func TestDeletionsCountByUID(t *testing.T) {
	e := expectations.New[string](expectations.Options{})
	e.Expect("a", 0, "x", "y")
	e.Deleted("a", "x")
	e.Deleted("a", "x")
	e.Deleted("a", "z")
	require.False(t, e.Satisfied("a"))
	pending, some := e.Pending("a")
	require.True(t, some)
	require.Equal(t, []types.UID{"y"}, pending.Deletions)
	require.Zero(t, pending.Creations)
	e.Deleted("a", "y")
	_, some = e.Pending("a")
	require.False(t, some)
}

func TestExpectationsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := expectations.New[string](expectations.Options{})
		short := expectations.New[string](expectations.Options{Timeout: time.Second})
		e.Expect("a", 1)
		short.Expect("a", 1)
		began := time.Now()
		<-time.After(time.Second)
		require.True(t, short.Satisfied("a"))
		<-time.After(5*time.Minute - time.Second - 1)
		require.False(t, e.Satisfied("a"))
		pending, _ := e.Pending("a")
		require.Equal(t, began, pending.Since)
		<-time.After(1)
		require.True(t, e.Satisfied("a"))
		require.Zero(t, e.Len())

		e.Expect("a", 1)
		<-time.After(4 * time.Minute)
		e.Raise("a", 0, "x")
		<-time.After(4 * time.Minute)
		require.False(t, e.Satisfied("a"), "Raise restarts the timeout")
	})
}

func TestNothingIsKept(t *testing.T) {
	e := expectations.New[int](expectations.Options{})
	for i := range 1000 {
		e.Expect(i, 1, "x")
		e.Deleted(i, "x")
		e.Created(i, 1)
	}
	require.Zero(t, e.Len())
}

// TestModel runs many goroutines with keys of their own, in random order, and compares the result with plain counts.
func TestModel(t *testing.T) {
	e := expectations.New[int](expectations.Options{})
	var all sync.WaitGroup
	for key := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(key), 1))
			creations, deletions := 0, map[types.UID]bool{}
			for range 2000 {
				n, uid := random.IntN(4), types.UID(fmt.Sprint(random.IntN(5)))
				switch random.IntN(6) {
				case 0:
					e.Expect(key, n, uid)
					creations, deletions = n, map[types.UID]bool{uid: true}
				case 1:
					e.Raise(key, n)
					creations += n
				case 2, 3:
					e.Created(key, n)
					creations = max(0, creations-n)
				case 4:
					e.Deleted(key, uid)
					delete(deletions, uid)
				default:
					runtime.Gosched()
				}
				if want := creations == 0 && len(deletions) == 0; want != e.Satisfied(key) {
					t.Errorf("key %d: satisfied is %v with %d creations and the deletions %v to come", key, !want, creations, deletions)
					return
				}
			}
		})
	}
	all.Wait()
}
