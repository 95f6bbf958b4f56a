package events

import (
	"time"
)

const (
	aggregateAfter = 10               // notes with one reason about one object
	aggregateFor   = 10 * time.Minute // without one, the count starts again
	combined       = "(combined from similar events): "

	spamBurst  = 25
	spamRefill = 5 * time.Minute

	seriesPause = time.Minute     // between two writes of a series
	seriesEnd   = 6 * time.Minute // without an occurrence, a series has ended

	maxKept = 4096
)

// correlator decides what happens to each event: it is dropped, starts a series, or continues one. It sends no requests
// and gets the time with each event. One goroutine uses it.
type correlator struct {
	series  lru[seriesKey, *series]
	similar lru[identity, *distinctNotes]
	objects lru[reference, *bucket]
}

// seriesKey identifies a series. Its identity has no resource versions. Its note is that of all its events, or the
// constant combined.
type seriesKey struct {
	identity
	note string
}

// series is an event that occurred once or more.
type series struct {
	identity        // with the resource versions of the first event
	note     string // of the first event
	name     string // of its Event
	stored   bool   // the Event is on the server
	first    time.Time
	last     time.Time
	count    int32
	written  int32     // the count on the server
	wrote    time.Time // the time of the last write
}

// distinctNotes are the different notes with one reason about one object.
type distinctNotes struct {
	texts map[string]struct{}
	last  time.Time
}

// bucket is a token bucket: it limits the events about one object.
type bucket struct {
	tokens float64
	at     time.Time
}

func newCorrelator() *correlator {
	return &correlator{
		series:  newLRU[seriesKey, *series](maxKept),
		similar: newLRU[identity, *distinctNotes](maxKept),
		objects: newLRU[reference, *bucket](maxKept),
	}
}

// add counts an event and returns its series, or nil if there are too many events about its object.
func (c *correlator) add(e queuedEvent) *series {
	if !c.allow(e) {
		return nil
	}
	key, note := seriesKey{identity: e.ofAnyVersion(), note: e.note}, e.note
	if c.aggregated(key, e.at) {
		key.note, note = combined, shorten(combined+e.note, maxNote)
	}
	s, known := c.series.get(key)
	if !known || e.at.Sub(s.last) > seriesEnd {
		s = &series{identity: e.identity, note: note, name: newName(e.regarding.Name), first: e.at}
		c.series.put(key, s)
	}
	s.last = e.at
	s.count++
	return s
}

// allow takes a token of the object's bucket, and reports whether there was one.
func (c *correlator) allow(e queuedEvent) bool {
	object := e.regarding.ofAnyVersion()
	b, known := c.objects.get(object)
	if !known {
		b = &bucket{tokens: spamBurst, at: e.at}
		c.objects.put(object, b)
	}
	b.tokens = min(spamBurst, b.tokens+float64(e.at.Sub(b.at))/float64(spamRefill))
	b.at = e.at
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// aggregated reports whether the notes with one reason are so many that they are combined.
func (c *correlator) aggregated(key seriesKey, at time.Time) bool {
	n, known := c.similar.get(key.identity)
	if !known || at.Sub(n.last) > aggregateFor {
		n = &distinctNotes{texts: map[string]struct{}{}}
		c.similar.put(key.identity, n)
	}
	n.last = at
	if len(n.texts) > aggregateAfter {
		return true
	}
	n.texts[key.note] = struct{}{}
	return len(n.texts) > aggregateAfter
}
