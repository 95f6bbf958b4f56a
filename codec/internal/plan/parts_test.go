//go:build !purego

package plan

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// value is a part of an object.
type value [4]*byte

// store keeps a value for a number.
func store(p *Parts, f *PartKind, h *Hasher, n int) *value {
	v := &value{new(byte)}
	p.Keep(h.Of(p, f, binary.BigEndian.AppendUint64(nil, uint64(n))), v[0], 1)
	return v
}

func newKind() *PartKind {
	k := NewPartKind(false)
	return &k
}

func look(p *Parts, f *PartKind, h *Hasher, n int) (at *byte, keep bool) {
	at, _, keep = p.Find(f, h.Of(p, f, binary.BigEndian.AppendUint64(nil, uint64(n))))
	return at, keep
}

// TestPartsThatNeverRepeat decodes parts of a kind that are all different, and then the parts of some objects again and
// again. In the first list, nothing repeats either, and that says nothing about the next states.
func TestPartsThatNeverRepeat(t *testing.T) {
	for _, keepFirst := range []bool{false, true} {
		p, k, h := NewParts(MaxParts), NewPartKind(keepFirst), &Hasher{}
		var values []*value // hold the parts
		decode := func(n, version int) (looked, found bool) {
			h.Begin(fmt.Append(nil, n))
			part := fmt.Appendf(nil, "part %d of an object, version %d", n, version)
			tag, at, _, keep := h.Find(p, &k, part)
			if keep {
				v := &value{new(byte)}
				values = append(values, v)
				p.Keep(tag, v[0], 1)
			}
			return tag != Tag{}, at != nil
		}
		if keepFirst {
			for n := range 5_000 {
				looked, _ := decode(n, 0)
				require.True(t, looked, "a first list")
			}
		}
		h.Update = true
		looks := 0
		for n := range 5_000 {
			if looked, _ := decode(n, 1); looked {
				looks++
			}
		}
		require.Less(t, looks, 2_500, "until the credit is used, and one of sixteen later")
		hits := 0
		for range 25 {
			for n := range 400 { // one of sixteen is a sample, so some are
				if _, found := decode(n, 2); found {
					hits++
				}
			}
		}
		require.Greater(t, hits, 1_000, "a reader notices when parts repeat")
		runtime.KeepAlive(values)
	}
}

// TestPartsOfALargeCollection changes all parts of 5,000 objects in each round, and then none. Each object comes once
// in a round, so a reader notices only if the samples stay the same for some rounds.
func TestPartsOfALargeCollection(t *testing.T) {
	p, k, h := NewParts(MaxParts), NewPartKind(true), &Hasher{Update: true}
	values := make([]*value, 5_000)
	round := func(version int) (found int) {
		for n := range values {
			h.Begin(fmt.Append(nil, "object ", n))
			tag, at, _, keep := h.Find(p, &k, fmt.Appendf(nil, "part of object %d, version %d", n, version))
			if at != nil {
				found++
			} else if values[n] = (&value{new(byte)}); keep {
				p.Keep(tag, values[n][0], 1)
			}
		}
		return found
	}
	for version := range 3 {
		require.Zero(t, round(version))
	}
	found := 0
	for range 20 {
		found = round(3)
		runtime.GC() // what an object no longer has is not found
	}
	require.Greater(t, found, 4_500)
}

// TestPartsThatComeByTurns has two parts whose marks have the same place, so each replaces the mark of the other.
func TestPartsThatComeByTurns(t *testing.T) {
	p, k, h := NewParts(MaxParts), newKind(), &Hasher{}
	place := func(n int) (*shard, uint64) {
		tag := h.Of(p, k, binary.BigEndian.AppendUint64(nil, uint64(n)))
		s := p.shard(tag)
		return s, tag.Place() >> 20 & uint64(len(s.seen)-1)
	}
	other := 1
	for in, at := place(0); ; other++ {
		if s, place := place(other); s == in && place == at {
			break
		}
	}
	var values []*value // hold the parts
	for range 3 {
		for _, n := range []int{0, other} {
			if _, keep := look(p, k, h, n); keep {
				values = append(values, store(p, k, h, n))
			}
		}
	}
	require.Len(t, values, 2)
	runtime.KeepAlive(values)
}

// TestPartsOfWhichSomeRepeat has kinds of which half of the parts are a few frequent ones.
func TestPartsOfWhichSomeRepeat(t *testing.T) {
	for frequent := 1; frequent <= 20; frequent++ {
		p, k, h := NewParts(MaxParts), NewPartKind(true), &Hasher{Update: true}
		var values []*value // hold the parts
		missed := 0
		for i := range 20_000 {
			text := fmt.Appendf(nil, "a part that comes only once: %d", i)
			if i%2 == 0 {
				text = fmt.Appendf(nil, "a part that comes often: %d", i/2%frequent)
			}
			tag, at, _, keep := h.Find(p, &k, text)
			if keep {
				values = append(values, &value{new(byte)})
				p.Keep(tag, values[len(values)-1][0], 1)
			}
			if i%2 == 0 && at == nil {
				missed++
			}
		}
		require.Less(t, missed, 1_000, "of 10,000 with %d texts", frequent)
		runtime.KeepAlive(values)
	}
}

func TestPartsAreFoundUntilTheyAreCollected(t *testing.T) {
	p, f, h := NewParts(MaxParts), newKind(), &Hasher{}
	const n = 5_000 // the table grows
	values := make([]*value, n)
	for i := range values {
		values[i] = store(p, f, h, i)
	}
	found := 0
	for i, v := range values {
		if at, _ := look(p, f, h, i); at != nil {
			found++
			require.Same(t, v[0], at)
		}
	}
	require.Greater(t, found, n*9/10)
	at, _ := look(p, newKind(), h, 1)
	require.Nil(t, at, "another kind has another type")
	at, _ = look(NewParts(MaxParts), f, h, 1)
	require.Nil(t, at, "another table has other parts")
	runtime.KeepAlive(values)
	clear(values)
	for range 3 {
		runtime.GC()
	}
	alive := 0
	for i := range n {
		if at, _ := look(p, f, h, i); at != nil {
			alive++
		}
	}
	require.Less(t, alive, n/100, "the table keeps no value alive")
}

// TestPartsAreBounded has more values than the table takes.
func TestPartsAreBounded(t *testing.T) {
	p, f, h := NewParts(MaxParts), newKind(), &Hasher{}
	const n = 2 * MaxParts
	values := make([]*value, n)
	for i := range values {
		values[i] = store(p, f, h, i)
	}
	for i := range p.shards {
		require.Len(t, p.shards[i].parts, MaxParts/partShards)
	}
	recent := 0
	for i := n - 1_000; i < n; i++ {
		if at, _ := look(p, f, h, i); at != nil {
			recent++
		}
	}
	require.Greater(t, recent, 900, "new values replace old ones")
	runtime.KeepAlive(values)
}

// TestDeadPartsMakeRoom stores values that nobody holds. The table does not grow for them, except while it has few
// places: then it grows when the places of one part are full, which depends on the random key.
func TestDeadPartsMakeRoom(t *testing.T) {
	p, f, h := NewParts(MaxParts), newKind(), &Hasher{}
	for i := range 100 {
		for j := range partShards * firstParts / 4 {
			store(p, f, h, i*1_000_000+j)
		}
		runtime.GC()
	}
	for i := range p.shards {
		require.LessOrEqual(t, len(p.shards[i].parts), fewParts)
	}
}

// TestKeepingBeginsWithTheSecondTime has a kind whose parts are kept at once, and one whose are not.
func TestKeepingBeginsWithTheSecondTime(t *testing.T) {
	p, first, h := NewParts(MaxParts), newKind(), &Hasher{}
	first.KeepFirst = true
	_, keep := look(p, first, h, 1)
	require.True(t, keep)
	f := newKind()
	_, keep = look(p, f, h, 2)
	require.False(t, keep)
	_, keep = look(p, f, h, 2)
	require.True(t, keep)
}
