package store

import (
	"fmt"
	"strconv"
	"strings"
)

// names generates UIDs and suffixes of names from a counter, so that equal requests in equal order give equal objects.
type names struct {
	seed    uint64
	counter uint64
}

// suffixAlphabet has no vowels, so suffixes are not words, and no characters that look alike.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func (n *names) uid() string {
	n.counter++
	return n.uidOf(n.counter)
}

// uidOf returns the UID that the counter leads to. It begins with characters that look random, because the hash of a
// shardSelector spreads only UIDs that differ early.
func (n *names) uidOf(counter uint64) string {
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(scramble(n.seed^counter)), uint16(n.seed), counter)
}

// avoid makes later UIDs differ from one that an earlier server with the same seed generated.
func (n *names) avoid(uid string) {
	digits := uid[strings.LastIndexByte(uid, '-')+1:]
	if counter, err := strconv.ParseUint(digits, 16, 48); err == nil && uid == n.uidOf(counter) {
		n.counter = max(n.counter, counter)
	}
}

// suffix returns five characters that look random.
func (n *names) suffix() string {
	n.counter++
	bits := scramble(n.seed ^ n.counter)
	var out [5]byte
	for i := range out {
		out[i] = suffixAlphabet[bits%uint64(len(suffixAlphabet))]
		bits /= uint64(len(suffixAlphabet))
	}
	return string(out[:])
}

// scramble is the finalizer of splitmix64. Its results look random, also for neighbouring inputs.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
