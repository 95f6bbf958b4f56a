package recorder

import (
	"time"
)

const (
	aggregateAfter = 10               // notes with one reason about one object
	aggregateFor   = 10 * time.Minute // without one, their count begins anew
	combined       = "(combined from similar events): "

	spamBurst  = 25
	spamRefill = 5 * time.Minute

	seriesPause = time.Minute     // between two writes of a series
	seriesEnd   = 6 * time.Minute // after which a series that was not heard of has ended

	remembered = 4096
)

// correlator decides what becomes of each event: nothing, a new Event, or one more in a series. It is told the time, does no
// I/O, and is used by one goroutine.
type correlator struct {
	series  memory[seriesKey, *series]
	similar memory[identity, *notes]
	objects memory[reference, *bucket]
}

// seriesKey tells one series from another: its identity is of any version, its note that of all, or combined.
type seriesKey struct {
	identity
	note string
}

// series is an event that was told once or more.
type series struct {
	identity        // with the versions that the first was told of
	note     string // of the first
	name     string // of its Event
	stored   bool   // the server has taken it
	first    time.Time
	last     time.Time
	count    int32
	written  int32     // the count that the server knows
	wrote    time.Time // when
}

// notes are those that came with one reason about one object.
type notes struct {
	different map[string]struct{}
	last      time.Time
}

// bucket is how many events about one object may still be told.
type bucket struct {
	tokens float64
	at     time.Time
}

func newCorrelator() *correlator {
	return &correlator{
		series:  newMemory[seriesKey, *series](remembered),
		similar: newMemory[identity, *notes](remembered),
		objects: newMemory[reference, *bucket](remembered),
	}
}

// tell returns the series that an event belongs to, with the event counted, or nil if too much was told of its object.
func (c *correlator) tell(t told) *series {
	if !c.allow(t) {
		return nil
	}
	key, note := seriesKey{identity: t.ofAnyVersion(), note: t.note}, t.note
	if c.aggregated(key, t.at) {
		key.note, note = combined, cut(combined+t.note, maxNote)
	}
	s, known := c.series.get(key)
	if !known || t.at.Sub(s.last) > seriesEnd {
		s = &series{identity: t.identity, note: note, name: newName(t.regarding.Name), first: t.at}
		c.series.put(key, s)
	}
	s.last = t.at
	s.count++
	return s
}

// allow takes a token of the object's bucket.
func (c *correlator) allow(t told) bool {
	object := t.regarding.ofAnyVersion()
	b, known := c.objects.get(object)
	if !known {
		b = &bucket{tokens: spamBurst, at: t.at}
		c.objects.put(object, b)
	}
	b.tokens = min(spamBurst, b.tokens+float64(t.at.Sub(b.at))/float64(spamRefill))
	b.at = t.at
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// aggregated tells whether so many different notes came with one reason that they are combined.
func (c *correlator) aggregated(key seriesKey, at time.Time) bool {
	n, known := c.similar.get(key.identity)
	if !known || at.Sub(n.last) > aggregateFor {
		n = &notes{different: map[string]struct{}{}}
		c.similar.put(key.identity, n)
	}
	n.last = at
	if len(n.different) > aggregateAfter {
		return true
	}
	n.different[key.note] = struct{}{}
	return len(n.different) > aggregateAfter
}
