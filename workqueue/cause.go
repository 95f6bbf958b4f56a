package workqueue

import "time"

// Cause tells why a key was added. The queue carries causes and does not interpret them. A zero Cause is ignored.
// client-go and controller-runtime have nothing like it.
type Cause struct {
	Source  string    // the observer: "pods", "configmaps"
	Event   string    // the kind of event: "add", "update", "resync"
	Object  string    // the object of the event: "default/web-0"
	Version string    // the resource version of the object
	At      time.Time // the time of the event, by the observer's clock
}

func (c *Cause) isZero() bool {
	return c.Source == "" && c.Event == "" && c.Object == "" && c.Version == "" && c.At.IsZero()
}

// defaultCauses is the default of Options.MaxCauses.
const defaultCauses = 4

// roomyCauses is the longest list that an entry keeps when it is reused. Otherwise a queue with a large MaxCauses would
// keep the memory that one burst needed.
const roomyCauses = 8

// causeList holds the causes of the adds that one hand-out answers: the first ones, and the number of the others. A
// single cause needs no array besides the list itself. The zero value is empty.
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
	if cap(l.kept) == 0 {
		l.kept = l.first[:0]
	}
	l.kept = append(l.kept, *c)
}

// reset removes the causes, including their strings, and keeps the memory.
func (l *causeList) reset() {
	clear(l.kept)
	l.kept, l.omitted = l.kept[:0], 0
	if cap(l.kept) > len(l.first) {
		l.first[0] = Cause{} // it was copied when the list outgrew it
	}
	if cap(l.kept) > roomyCauses {
		l.kept = nil
	}
}
