package workqueue

import (
	"slices"
	"time"
)

// Cause says why a key was added. The queue carries causes and never looks into them; a zero Cause is none.
// Nothing in client-go or controller-runtime corresponds to it.
type Cause struct {
	Source  string    // who saw it: "pods", "configmaps"
	Event   string    // what was seen: "add", "update", "resync"
	Object  string    // on what: "default/web-0"
	Version string    // the resource version that was seen
	At      time.Time // when it was seen, by the clock of whoever saw it
}

func (c *Cause) isZero() bool {
	return c.Source == "" && c.Event == "" && c.Object == "" && c.Version == "" && c.At.IsZero()
}

// defaultCauses is the number of causes kept where Options does not say.
const defaultCauses = 4

// roomyCauses is the largest list that an entry keeps when it is reused, so that a queue with a great MaxCauses does
// not hold on to what one burst needed.
const roomyCauses = 8

// causeList holds the causes of the adds that one hand-out answers: the first few, and the number of the others.
// The one cause of an add that met no other needs no array besides the list itself. The zero value is empty.
type causeList struct {
	kept    []Cause
	omitted int
	first   [1]Cause
}

func (l *causeList) add(c *Cause, limit int) {
	if len(l.kept) >= limit {
		l.omitted++
		return
	}
	switch cap(l.kept) {
	case 0:
		l.kept = l.first[:0]
	case len(l.kept): // the first growth is the last, where MaxCauses is the usual
		l.kept = slices.Grow(l.kept, max(min(limit, defaultCauses)-len(l.kept), 1))
	}
	l.kept = append(l.kept, *c)
}

// reset forgets the causes, their strings included, and keeps the room.
func (l *causeList) reset() {
	clear(l.kept)
	l.kept = l.kept[:0]
	l.omitted = 0
	if cap(l.kept) > len(l.first) {
		l.first[0] = Cause{} // it was copied when the list outgrew it
	}
	if cap(l.kept) > roomyCauses {
		l.kept = l.first[:0]
	}
}
