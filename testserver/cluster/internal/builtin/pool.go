package builtin

import (
	"hash/fnv"
	"maps"
	"slices"
	"sync"
)

// pool says which numbers of a range are held, and by which object. Its methods may run on any goroutine.
type pool struct {
	first, last, dynamic int32 // numbers below dynamic are chosen last

	mu      sync.Mutex // guards the fields below
	holders map[int32]string
}

func (p *pool) contains(n int32) bool { return p.first <= n && n <= p.last }

// free reports whether an object may hold a number.
func (p *pool) free(n int32, holder string) bool { return p.allFree([]int32{n}, holder) }

func (p *pool) allFree(numbers []int32, holder string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(numbers, func(n int32) bool {
		have, held := p.holders[n]
		return held && have != holder
	})
}

// pick returns a free number besides some that are used. Equal states, objects and uses give equal numbers.
func (p *pool) pick(holder, use string, used ...int32) (n int32, ok bool) {
	h := fnv.New32a()
	h.Write([]byte(holder + use))
	start := h.Sum32()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, band := range [][2]int32{{p.dynamic, p.last}, {p.first, p.dynamic - 1}} {
		size := uint32(band[1] - band[0] + 1)
		for i := range size {
			n := band[0] + int32((start+i)%size)
			if _, held := p.holders[n]; !held && !slices.Contains(used, n) {
				return n, true
			}
		}
	}
	return 0, false
}

// take makes numbers the only ones that an object holds.
func (p *pool) take(numbers []int32, holder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.holders, func(_ int32, have string) bool { return have == holder })
	if p.holders == nil {
		p.holders = map[int32]string{}
	}
	for _, n := range numbers {
		p.holders[n] = holder
	}
}

func (p *pool) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.holders)
}
