package store

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// woken reports whether the channel of a cursor has a value, and leaves it there.
func woken(c *Cursor) bool { return len(c.wake) > 0 }

func newTurn() *Cursor { return &Cursor{turn: turn{wake: make(chan struct{}, 1)}} }

// one limits the runtime to a processor, which is one turn.
func one(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestCursorsWakeOneAfterAnother(t *testing.T) {
	one(t)
	var r relay
	a, b, c := newTurn(), newTurn(), newTurn()
	for _, cursor := range []*Cursor{a, b, c} {
		cursor.looked(&r)
		r.wait(cursor)
	}
	r.fire()
	require.Equal(t, []bool{true, false, false}, []bool{woken(a), woken(b), woken(c)})
	r.fire()
	require.False(t, woken(b), "it is the turn of the first one")
	<-a.wake
	r.leave(a)
	require.True(t, woken(b))
	a.looked(&r)
	r.wait(a)
	r.leave(b) // another reason ended the wait, and the turn passes on
	require.True(t, woken(c))
	r.leave(c)
	require.False(t, woken(a), "it waits for a later change")
	require.Zero(t, r.turns)
}

func TestACursorThatStopsWaitingHasNoTurn(t *testing.T) {
	one(t)
	var r relay
	a, b := newTurn(), newTurn()
	for _, cursor := range []*Cursor{a, b} {
		cursor.looked(&r)
		r.wait(cursor)
	}
	r.leave(a)
	r.fire()
	require.False(t, woken(a))
	require.True(t, woken(b))
}

func TestAChangeBeforeTheWaitIsNotMissed(t *testing.T) {
	var r relay
	a := newTurn()
	a.looked(&r)
	r.fire()
	r.wait(a)
	require.True(t, woken(a))
	r.leave(a)
	require.False(t, woken(a))
	require.Zero(t, r.turns)
}

// TestEveryCursorIsWoken waits, fires and leaves at random. As long as the cursors that were woken leave, each that
// waits since before the last fire gets its turn.
func TestEveryCursorIsWoken(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, seed))
		var r relay
		var cursors []*Cursor
		for range 20 {
			cursors = append(cursors, newTurn())
		}
		waiting := func(c *Cursor) bool { return c.waits || c.woken || woken(c) }
		for range 300 {
			c := cursors[random.IntN(len(cursors))]
			switch {
			case random.IntN(5) == 0:
				r.fire()
			case waiting(c):
				r.leave(c)
			default:
				c.looked(&r)
				if random.IntN(4) == 0 {
					r.fire()
				}
				r.wait(c)
			}
		}
		r.fire()
		for {
			i := slices.IndexFunc(cursors, woken)
			if i < 0 {
				break
			}
			r.leave(cursors[i])
		}
		require.Zero(t, r.turns)
		require.False(t, slices.ContainsFunc(cursors, waiting), "seed %d", seed)
	}
}
