package hooks_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/hooks"
)

func tell[T any](s *hooks.Set[func(T)], what T) {
	for _, f := range s.All() {
		(*f)(what)
	}
}

func TestAddAndRemove(t *testing.T) {
	var s hooks.Set[func(string)]
	var told []string
	listen := func(who string) func() {
		return s.Add(func(what string) { told = append(told, who+" "+what) })
	}
	require.Empty(t, s.All())
	tell(&s, "nobody")
	leaveA := listen("a")
	leaveB := listen("b")
	require.Len(t, s.All(), 2)
	tell(&s, "one")
	leaveA()
	leaveA()
	tell(&s, "two")
	leaveB()
	tell(&s, "three")
	require.Equal(t, []string{"a one", "b one", "b two"}, told)
	require.Empty(t, s.All())
}

func TestAFunctionMayRemoveItself(t *testing.T) {
	var s hooks.Set[func(int)]
	var told []int
	var leave func()
	leave = s.Add(func(n int) {
		told = append(told, n)
		leave()
	})
	tell(&s, 1)
	tell(&s, 2)
	require.Equal(t, []int{1}, told)
}

func TestEverybodyAtOnce(t *testing.T) {
	var s hooks.Set[func(int)]
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
	require.Empty(t, s.All())
}

func TestAnEmptySetCostsNothing(t *testing.T) {
	var s hooks.Set[func([4]int)]
	require.Zero(t, testing.AllocsPerRun(100, func() { tell(&s, [4]int{1, 2, 3, 4}) }))
	defer s.Add(func([4]int) {})()
	require.Zero(t, testing.AllocsPerRun(100, func() { tell(&s, [4]int{1, 2, 3, 4}) }), "a call of one function does not allocate either")
}
