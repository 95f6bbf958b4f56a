package explore_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/explore"
)

// walk is a world of points in a square. A step goes right or up.
func walk(bad func(x, y int) bool) explore.World[[2]int] {
	return explore.World[[2]int]{
		First: [][2]int{{0, 0}},
		Next: func(p [2]int, yield func([2]int)) {
			for axis := range p {
				if to := p; to[axis] < 9 {
					to[axis]++
					yield(to)
				}
			}
		},
		Key: func(p [2]int, to []byte) []byte { return append(to, byte(p[0]), byte(p[1])) },
		Check: func(p [2]int) error {
			if bad(p[0], p[1]) {
				return errors.New("a bad point")
			}
			return nil
		},
		Describe: func(p [2]int) string { return string([]byte{'0' + byte(p[0]), ',', '0' + byte(p[1])}) },
	}
}

func TestEachStateOnce(t *testing.T) {
	visits := map[[2]int]int{}
	var mu sync.Mutex // guards visits
	w := walk(func(x, y int) bool {
		mu.Lock()
		defer mu.Unlock()
		visits[[2]int{x, y}]++
		return false
	})
	r := explore.Run(w, explore.Options{Depth: 100, States: 1000})
	require.NoError(t, r.Failure)
	require.Equal(t, explore.Report{States: 100, Steps: 180, Depth: 18, Whole: true, Exhausted: true}, r)
	require.Len(t, visits, 100)
	for p, n := range visits {
		require.Equal(t, 1, n, p)
	}
	r = explore.Run(w, explore.Options{Depth: 3, States: 1000})
	require.Equal(t, "10 states, 12 steps, depth 3, all of this depth", r.String())
	r = explore.Run(w, explore.Options{Depth: 100, States: 20})
	require.False(t, r.Whole)
	require.LessOrEqual(t, r.States, 24)
}

func TestShortestFailure(t *testing.T) {
	w := walk(func(x, y int) bool { return x >= 2 && y >= 1 || x+y > 5 })
	r := explore.Run(w, explore.Options{Depth: 100, States: 1000})
	require.ErrorContains(t, r.Failure, "a bad point\n0,0\n")
	require.Len(t, r.Choices, 4)
	lines := explore.Replay(w, r.Choices)
	require.Equal(t, "2,1", lines[3])
}

func TestFairStepsLeadToAGoodEnd(t *testing.T) {
	w := walk(func(x, y int) bool { return false })
	w.FairSteps = 9
	w.Fair = func(p [2]int) ([2]int, bool) { return [2]int{min(p[0]+1, 9), p[1]}, p[0] == 9 }
	require.NoError(t, explore.Run(w, explore.Options{Depth: 100, States: 1000}).Failure)
	w.Fair = func(p [2]int) ([2]int, bool) { return [2]int{min(p[0]+1, 9), p[1]}, p[0] == 9 && p[1] < 3 }
	r := explore.Run(w, explore.Options{Depth: 100, States: 1000})
	require.ErrorContains(t, r.Failure, "no good end after 9 fair steps")
	require.Len(t, r.Choices, 4)
	w.FairSteps = 8
	require.Error(t, explore.Run(w, explore.Options{Depth: 100, States: 1000}).Failure)

	line := explore.World[byte]{ // the fair steps lead back through states that have settled
		First: []byte{0},
		Next: func(n byte, yield func(byte)) {
			if n < 100 {
				yield(n + 1)
			}
		},
		Key:   func(n byte, to []byte) []byte { return append(to, n) },
		Check: func(byte) error { return nil },
		Fair: func(n byte) (byte, bool) {
			if n == 0 {
				return n, true
			}
			return n - 1, false
		},
		FairSteps: 9,
		Describe:  func(n byte) string { return string('0' + rune(n)) },
	}
	r = explore.Run(line, explore.Options{Depth: 200, States: 1000})
	require.ErrorContains(t, r.Failure, "a good end needs more than 9 fair steps")
	require.Len(t, r.Choices, 11)
}

// lamp is code that cannot be copied: a timer turns it off.
type lamp struct {
	on, broken bool
	clicks     int
	off        *time.Timer
}

// stop stops the timer, because it would change a lamp that the exploration has left.
func (l *lamp) stop() {
	if l.off != nil {
		l.off.Stop()
	}
}

func lampMachine(most int) explore.Machine[*lamp] {
	always := func(*lamp) bool { return true }
	return explore.Machine[*lamp]{
		New: func() *lamp { return &lamp{} }, Close: (*lamp).stop,
		First: []explore.Step[*lamp]{
			{Name: "a new lamp", Do: func(*lamp) {}},
			{Name: "a lamp that is on", Do: func(l *lamp) { l.on = true }},
		},
		Steps: []explore.Step[*lamp]{
			{Name: "click", Can: func(l *lamp) bool { return l.clicks < most }, Do: func(l *lamp) {
				l.stop()
				l.on, l.clicks = !l.on, l.clicks+1
				l.off = time.AfterFunc(time.Minute, func() { l.on = false })
			}},
			{Name: "a minute passes", Can: func(l *lamp) bool { return l.on && l.off != nil }, Fair: true, Do: func(*lamp) {
				<-time.After(time.Minute)
				synctest.Wait()
			}},
			{Name: "break", Can: always, Do: func(l *lamp) { l.broken = true }},
		},
		Key: func(l *lamp, to []byte) []byte {
			b := byte(l.clicks)
			for i, is := range []bool{l.on, l.broken, l.off != nil} {
				if is {
					b |= 16 << i
				}
			}
			return append(to, b)
		},
		Check: func(l *lamp) error {
			if l.broken && l.clicks == 2 {
				return errors.New("a broken lamp")
			}
			return nil
		},
		Rest: func(l *lamp) error {
			if l.on {
				return errors.New("it is on")
			}
			return nil
		},
		FairSteps: 3,
		Lines:     func(l *lamp) []string { return []string{map[bool]string{true: "on", false: "off"}[l.on]} },
	}
}

func TestAMachineIsReplayed(t *testing.T) {
	o := explore.Options{Depth: 10, States: 100, Around: explore.InBubbles(t)}
	m := lampMachine(2)
	explore.Finds(t, m.World(), o, "it is on\n> a lamp that is on")
	m.First = nil
	explore.Finds(t, m.World(), o, "a broken lamp\n> the beginning\n          off\n> ")
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		m := lampMachine(2)
		r := explore.Run(func() explore.World[explore.Way] { m := m; m.First = nil; return m.World() }(), explore.Options{Depth: 10, States: 100, Workers: 1})
		lines = strings.Split(r.Failure.Error(), "\n")
		require.ErrorContains(t, m.Play("> a new lamp\n"+strings.Join(lines[1:], "\n")), "a broken lamp")
		require.NoError(t, m.Play("> a new lamp\n> click\n  on\n> a minute passes\n> click"))
		require.ErrorContains(t, m.Play("> a minute passes"), `the step "a minute passes" is not possible`)
		require.ErrorContains(t, m.Play("> jump"), "not possible")
	})
}
