package recording

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// someText returns n bytes like those of an object.
func someText(r *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, `"%s":"%x",`, []string{"name", "image", "value", "key", "mountPath"}[r.IntN(5)], r.Uint64())
	}
	return b[:n]
}

// edit returns a text with a change at a random place.
func edit(r *rand.Rand, text []byte) []byte {
	at := r.IntN(len(text))
	end := at + r.IntN(min(len(text)-at, 600))
	switch r.IntN(4) {
	case 0: // in its place
		out := bytes.Clone(text)
		copy(out[at:], someText(r, 1+r.IntN(20)))
		return out
	case 1: // added
		return append(append(bytes.Clone(text[:at]), someText(r, 1+r.IntN(700))...), text[at:]...)
	case 2: // removed
		return append(bytes.Clone(text[:at]), text[end:]...)
	default: // moved
		return append(append(bytes.Clone(text[:at]), text[end:]...), text[at:end]...)
	}
}

// asFrame returns a frame with an object, and where the object begins.
func asFrame(protobuf bool, object []byte) (frame []byte, start int) {
	if protobuf {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(object))), object...), 4
	}
	const head = `{"type":"MODIFIED","object":`
	return append(append([]byte(head), object...), "}\n"...), len(head)
}

// compareInPieces compares a frame that arrives in pieces, with bytes of the next frame behind it.
func compareInPieces(t *testing.T, c *comparison, k *keyframe, frame []byte, start int, piece func() int) []byte {
	t.Helper()
	c.begin(k, frame[:start])
	c.left = len(frame) - start
	stream := append(bytes.Clone(frame[start:]), "{\"type\":\n"...)
	for at := 0; ; {
		b := stream[at:min(len(stream), at+piece())]
		n, complete := c.add(bytes.Clone(b))
		at += n
		if complete {
			require.Equal(t, len(frame)-start, at)
			break
		}
		require.Equal(t, len(b), n)
		require.Less(t, at, len(frame)-start)
	}
	require.Equal(t, len(frame), c.size)
	return bytes.Clone(c.finish())
}

// TestDifferences compares frames with a keyframe after random changes. What a reader computes from the difference is
// the frame. A few changes cost a few parts, also if they move the rest of the frame.
func TestDifferences(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		protobuf := seed%2 == 0
		s := newSummer()
		object := someText(r, r.IntN(9000)+1)
		frame, start := asFrame(protobuf, object)
		k := newKeyframe(s, 1, frame, start, time.Now())
		c := &comparison{summer: s, protobuf: protobuf}
		for edits := range 6 {
			changed, from := asFrame(protobuf, object)
			d := compareInPieces(t, c, k, changed, from, func() int { return 1 + r.IntN(1<<(1+r.IntN(14))) })
			back, err := applyDifference(nil, frame, d)
			require.NoError(t, err)
			require.Equal(t, string(changed), string(back))
			whole := compareInPieces(t, c, k, changed, from, func() int { return 1 << 20 })
			back, err = applyDifference(nil, frame, whole)
			require.NoError(t, err)
			require.Equal(t, string(changed), string(back))
			require.LessOrEqual(t, len(whole), 300+edits*(700+4*partSize))
			object = edit(r, object)
		}
	}
}

// TestADifferenceOfAnotherObject compares a frame with a keyframe that has nothing in common with it.
func TestADifferenceOfAnotherObject(t *testing.T) {
	s := newSummer()
	frame, start := asFrame(false, []byte(strings.Repeat("a", 20_000)))
	k := newKeyframe(s, 1, frame, start, time.Now())
	other, from := asFrame(false, []byte(strings.Repeat("b", 20_000)))
	d := compareInPieces(t, &comparison{summer: s}, k, other, from, func() int { return 1 << 20 })
	back, err := applyDifference(nil, frame, d)
	require.NoError(t, err)
	require.Equal(t, string(other), string(back))
	require.Less(t, len(d), len(other)+10)
}

// TestSum has different hashes for parts that differ in one bit, and for the same part with another key.
func TestSum(t *testing.T) {
	s := newSummer()
	var part [partSize]byte
	seen := map[uint64]bool{s.sum(&part): true, newSummer().sum(&part): true}
	for bit := range partSize * 8 {
		part[bit/8] ^= 1 << (bit % 8)
		seen[s.sum(&part)] = true
		part[bit/8] ^= 1 << (bit % 8)
	}
	require.Len(t, seen, partSize*8+2)
}

// TestSumOfChosenParts has two parts and a key for which the halves of the 128 bits of NH differ, but not their
// exclusive or. Such parts can be chosen without the key; each random key is such a key with a chance of 2^-29.
func TestSumOfChosenParts(t *testing.T) {
	var one, two [partSize]byte
	copy(one[:], bytes.Repeat([]byte("a"), partSize))
	two = one
	copy(one[8:], "!!!!!!!!")
	copy(two[8:], "vvvvvvvv")
	s := &summer{0xecc9cb760e809d1f, 0x6854163a38bfce18, 0x2c688a512c166d65, 0xb12fc1fee9b5b697}
	for range 100 {
		s[len(s)-1] = newSummer()[len(s)-1]
		require.NotEqual(t, s.sum(&one), s.sum(&two))
	}
}

// FuzzDifference applies arbitrary bytes to a keyframe, and compares arbitrary frames. No input costs more memory than
// both.
func FuzzDifference(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	object := someText(r, 3000)
	f.Add([]byte{1, 'a', 2, 0}, []byte("abc"), object, edit(r, object), uint16(100))
	f.Add([]byte{0, 3, 1, 0, 255, 255, 3, 0}, []byte("abcdef"), object, []byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, difference, keyframe, before, after []byte, piece uint16) {
		if back, err := applyDifference(nil, keyframe, difference); err == nil {
			require.LessOrEqual(t, len(back), len(keyframe)+len(difference))
		}
		for _, protobuf := range []bool{false, true} {
			if !protobuf {
				before, after = bytes.ReplaceAll(before, []byte("\n"), []byte(" ")), bytes.ReplaceAll(after, []byte("\n"), []byte(" "))
			}
			s := newSummer()
			frame, start := asFrame(protobuf, before)
			k := newKeyframe(s, 1, frame, start, time.Now())
			changed, from := asFrame(protobuf, after)
			if len(changed) == from {
				continue
			}
			d := compareInPieces(t, &comparison{summer: s, protobuf: protobuf}, k, changed, from, func() int { return int(piece) + 1 })
			back, err := applyDifference(nil, frame, d)
			require.NoError(t, err)
			require.Equal(t, string(changed), string(back))
		}
	})
}

// TestKeyframesAreBounded adds keyframes of many objects. Memory stays below the limit; those that are used stay.
func TestKeyframesAreBounded(t *testing.T) {
	const limit = 100_000
	table := newKeyframes(limit)
	r := rand.New(rand.NewPCG(1, 1))
	frame := someText(r, 4000)
	at := time.Now()
	var used []uint64
	for n := range 5000 {
		k := newKeyframe(table.summer, r.Uint64(), frame[:1100+r.IntN(2900)], 0, at)
		table.add(k)
		require.LessOrEqual(t, table.memory, limit)
		if n < 10 {
			used = append(used, k.id)
		}
		for _, id := range used {
			require.NotNil(t, table.find(id, at), n)
		}
		require.Same(t, k, table.find(k.id, at))
	}
	memory, n := 0, 0
	for _, s := range table.table {
		if s.k != nil {
			memory, n = memory+s.k.memory(), n+1
			require.Same(t, s.k, table.table[table.at(s.id)].k)
		}
	}
	require.Equal(t, memory, table.memory)
	require.Equal(t, n, table.n)
	require.Greater(t, n, 50)
	require.Less(t, len(table.table), 8*n)
	table.add(newKeyframe(table.summer, 7, make([]byte, 1<<20), 0, at)) // above the limit by itself
	require.Nil(t, table.find(7, at))
	require.Equal(t, n, table.n)
}

// TestANewKeyframe is due after an object has moved away from its keyframe, after many uses, and after a time.
func TestANewKeyframe(t *testing.T) {
	table := newKeyframes(1 << 20)
	at := time.Now()
	add := func() *keyframe {
		k := newKeyframe(table.summer, 1, make([]byte, 2000), 0, at)
		table.add(k)
		return k
	}
	k := add()
	for range maxUses - 1 {
		table.noteUse(k, 400, true)
		require.Same(t, k, table.find(1, at))
	}
	table.noteUse(k, 400, true)
	require.Nil(t, table.find(1, at))
	k = add()
	table.noteUse(k, 1, false) // a frame that was cut off
	table.noteUse(k, 100, true)
	table.noteUse(k, 1500, true)
	require.Same(t, k, table.find(1, at))
	table.noteUse(k, 1500, true)
	require.Nil(t, table.find(1, at))
	k = add()
	require.Same(t, k, table.find(1, at.Add(maxKeyframeAge)))
	require.Nil(t, table.find(1, at.Add(maxKeyframeAge+1)))
	require.NotNil(t, add())
	require.NotNil(t, table.find(1, at))
	require.Equal(t, 1, table.n)
}
