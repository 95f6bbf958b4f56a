package recording

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// sumsOf returns the hashes of the parts of a frame, computed one at a time.
func sumsOf(s *summer, frame []byte) (sums []uint64) {
	for ; len(frame) >= partSize; frame = frame[partSize:] {
		sums = append(sums, s.sum((*[partSize]byte)(frame)))
	}
	return sums
}

func TestEqualParts(t *testing.T) {
	s := newSummer()
	frame := make([]byte, 5*partSize+7)
	_, _ = rand.Read(frame)
	sums := sumsOf(s, frame)
	require.Len(t, sums, 5)
	n, other := s.equal(sums, frame)
	require.Equal(t, 5, n)
	require.Zero(t, other, "the rest is shorter than a part")
	for at := range 5 * partSize {
		frame[at] ^= 1
		n, other = s.equal(sums, frame)
		require.Equal(t, at/partSize, n)
		require.NotEqual(t, sums[n], other)
		frame[at] ^= 1
	}
	n, other = s.equal(sums[:2], frame)
	require.Equal(t, 2, n)
	require.Equal(t, sums[2], other)
}

// BenchmarkSum compares a frame of 9 KB with its hashes.
func BenchmarkSum(b *testing.B) {
	s := newSummer()
	frame := make([]byte, 9000)
	sums := sumsOf(s, frame)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if n, _ := s.equal(sums, frame); n != len(sums) {
			b.Fatal(n)
		}
	}
}
