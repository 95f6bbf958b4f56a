package hooks_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/hooks"
)

func TestAddAndRemove(t *testing.T) {
	var s hooks.Set[string]
	var told []string
	listen := func(who string) func() {
		return s.Add(func(what string) { told = append(told, who+" "+what) })
	}
	require.True(t, s.Empty())
	s.Tell("nobody")
	leaveA := listen("a")
	leaveB := listen("b")
	require.False(t, s.Empty())
	s.Tell("one")
	leaveA()
	leaveA()
	s.Tell("two")
	leaveB()
	s.Tell("three")
	require.Equal(t, []string{"a one", "b one", "b two"}, told)
	require.True(t, s.Empty())
}

func TestAFunctionMayRemoveItself(t *testing.T) {
	var s hooks.Set[int]
	var told []int
	var leave func()
	leave = s.Add(func(n int) {
		told = append(told, n)
		leave()
	})
	s.Tell(1)
	s.Tell(2)
	require.Equal(t, []int{1}, told)
}

func TestEverybodyAtOnce(t *testing.T) {
	var s hooks.Set[int]
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				told := 0
				leave := s.Add(func(int) { told++ }) // each goroutine counts in its own variable; otherwise the race detector objects
				leave()
				require.Zero(t, told)
			}
		})
	}
	all.Wait()
	require.True(t, s.Empty())
}

func TestAnEmptySetCostsNothing(t *testing.T) {
	var s hooks.Set[[4]int]
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Tell([4]int{1, 2, 3, 4}) }))
	defer s.Add(func([4]int) {})()
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Tell([4]int{1, 2, 3, 4}) }), "a call of one function does not allocate either")
}
