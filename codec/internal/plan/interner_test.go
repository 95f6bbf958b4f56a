package plan

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// held returns the number of strings that n keeps.
func held(n *Interner) int {
	held, t := 0, n.table.Load()
	for i := range t.kept {
		if t.kept[i].Load() != nil {
			held++
		}
	}
	return held
}

// Intern looks for b as the first string of a reader.
func (n *Interner) Intern(b []byte) string {
	return new(NewTexts(n)).Text(b)
}

// TestStringsThatNeverRepeat decodes strings that are all different, and then a few again and again.
func TestStringsThatNeverRepeat(t *testing.T) {
	texts := NewTexts(NewInterner(MaxStrings))
	for i := range 10_000 {
		texts.Text(fmt.Appendf(nil, "10.2.%d", i))
	}
	require.GreaterOrEqual(t, int(texts.misses), worthless)
	found := 0
	for i := range 40_000 {
		if b := fmt.Appendf(nil, "node-%d", i%500); texts.look(fewBytes(b), b) != nil {
			found++
		}
	}
	require.Greater(t, found, 10_000, "a reader notices when strings repeat")
}

func TestInternerKeepsOnlyWhatRepeats(t *testing.T) {
	n := NewInterner(MaxStrings)
	for i := range 100_000 {
		require.Equal(t, fmt.Sprint("name-", i), n.Intern(fmt.Appendf(nil, "name-%d", i)))
	}
	require.Zero(t, held(n), "each was seen once")
	long := []byte(strings.Repeat("x", 257))
	for range 3 {
		n.Intern(long)
		n.Intern([]byte("y"))
		n.Intern(nil)
	}
	require.Zero(t, held(n), "too long, or nothing that allocates")

	b := []byte("kube-system")
	n.Intern(b)
	second, third := n.Intern(b), n.Intern(b)
	require.True(t, sameMemory(second, third))
	require.Equal(t, 1, held(n))
	copy(b, "overwritten")
	require.Equal(t, "kube-system", third, "nothing aliases the answer")
	require.Zero(t, testing.AllocsPerRun(10, func() { n.Intern([]byte("kube-system")) }))
}

// A string whose first place is taken has a second one.
func TestInternerHasTwoPlaces(t *testing.T) {
	n := NewInterner(MaxStrings)
	n.table.Store(newTable(MaxStrings)) // a table that grows loses some
	for i := range 2000 {
		for range 2 {
			n.Intern(fmt.Appendf(nil, "label-%d", i))
		}
	}
	require.Greater(t, held(n), 1750, "with one place each, some 1580 would have found one")
}

// A string that is looked up all the time stays, whatever other strings repeat and have its places.
func TestInternerKeepsWhatRepeatsMost(t *testing.T) {
	n := NewInterner(MaxStrings)
	often := []byte("IfNotPresent")
	n.Intern(often)
	want := n.Intern(often)
	for i := range 50_000 {
		require.True(t, sameMemory(want, n.Intern(often)), "after %d others", i)
		b := fmt.Appendf(nil, "label-%d", i)
		n.Intern(b)
		n.Intern(b)
	}
	require.Greater(t, held(n), 4000, "the others have places as well")
}

// However many strings repeat, the number of held strings has a limit, and the last ones have their place.
func TestInternerIsBounded(t *testing.T) {
	n := NewInterner(MaxStrings)
	for i := range 50_000 {
		b := fmt.Appendf(nil, "%0200d", i)
		for range 2 {
			require.Equal(t, string(b), n.Intern(b))
		}
	}
	require.Greater(t, held(n), 4000)
	require.LessOrEqual(t, held(n), 4096)
	last := []byte("the last")
	n.Intern(last)
	n.Intern(last)
	require.True(t, sameMemory(n.Intern(last), n.Intern(last)))
}

// The table grows, with all strings, when half of it is taken.
func TestInternerGrows(t *testing.T) {
	n := NewInterner(MaxStrings)
	var kept []string
	for i := range 2_000 {
		b := fmt.Appendf(nil, "label-%d", i)
		n.Intern(b)
		before, size := held(n), len(n.table.Load().marks)
		kept = append(kept, n.Intern(b))
		if len(n.table.Load().marks) > size {
			require.Equal(t, before+1, held(n))
		}
		if size := len(n.table.Load().marks); size < MaxStrings {
			require.LessOrEqual(t, held(n), size/2)
		}
	}
	same := 0
	for i, text := range kept {
		if sameMemory(text, n.Intern(fmt.Appendf(nil, "label-%d", i))) {
			same++
		}
	}
	require.Greater(t, same, 1_500)
	require.Len(t, n.table.Load().marks, MaxStrings)
}

// Strings are kept and found while the table grows.
func TestInternerGrowsBesideReaders(t *testing.T) {
	n := NewInterner(MaxStrings)
	var g sync.WaitGroup
	for range 4 {
		g.Go(func() {
			for i := range 3_000 {
				text := fmt.Sprint("label-", i/2)
				if n.Intern([]byte(text)) != text {
					panic(text)
				}
			}
		})
	}
	g.Wait()
}

// BenchmarkInterner looks up repeated strings, from one goroutine and from as many as there are processors. The ratio
// is the price of sharing one table.
func BenchmarkInterner(b *testing.B) {
	names := make([][]byte, 500)
	n := NewInterner(MaxStrings)
	for i := range names {
		names[i] = fmt.Appendf(nil, "registry.example.com/team/image-%d:v1", i)
		n.Intern(names[i])
		n.Intern(names[i])
	}
	b.Run("goroutines=1", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			n.Intern(names[i%len(names)])
		}
	})
	b.Run("goroutines=all", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				n.Intern(names[i%len(names)])
			}
		})
	})
	b.Run("goroutines=1/seen=once", func(b *testing.B) {
		unique := make([]byte, 40)
		for i := 0; b.Loop(); i++ {
			binary.LittleEndian.PutUint64(unique, uint64(i))
			n.Intern(unique)
		}
	})
}
