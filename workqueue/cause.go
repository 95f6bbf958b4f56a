package workqueue

import (
	"slices"
	"time"
)

// Cause tells why a key was added. The queue carries causes and does not interpret them. A zero Cause is ignored.
// client-go and controller-runtime have nothing like it.
type Cause struct {
	Source  string    // the observer: "pods", "configmaps"
	Event   string    // the kind of event: "add", "update", "resync"
	Object  string    // the object of the event: "default/web-0"
	Version string    // the resource version of the object
	At      time.Time // the time of the event, by the observer's clock
}

// defaultCauses is the default of Options.MaxCauses.
const defaultCauses = 4

// roomyCauses is the longest list that an entry keeps when it is reused. Otherwise a queue with a large MaxCauses would
// keep the memory that one burst needed.
const roomyCauses = 8

// causeList holds the causes of an entry. Adds append to it while the worker reads the front. A single cause needs no
// array besides the list itself. The zero value is empty.
type causeList struct {
	all     []Cause
	held    int32 // number of causes at the front that the worker reads until Done; the others belong to the pending adds
	omitted int32 // number of further causes of the pending adds
	first   [1]Cause
}

// add keeps a cause of a pending add, up to limit of them.
func (l *causeList) add(c *Cause, limit int) {
	if len(l.all)-int(l.held) >= limit {
		l.omitted++
		return
	}
	if cap(l.all) == 0 {
		l.all = l.first[:0]
	}
	l.all = append(l.all, *c)
}

// handOut gives the causes of the pending adds to the worker.
func (l *causeList) handOut() (causes []Cause, omitted int) {
	omitted, l.held, l.omitted = int(l.omitted), int32(len(l.all)), 0
	return slices.Clip(l.all), omitted
}

// takeBack removes the causes that the worker had.
func (l *causeList) takeBack() {
	l.remove(0, int(l.held))
	l.held = 0
}

// drop removes the causes of the pending adds.
func (l *causeList) drop() {
	l.remove(int(l.held), len(l.all))
	l.omitted = 0
}

// remove removes the causes from index i up to j, including their strings, and keeps the memory.
func (l *causeList) remove(i, j int) {
	l.all = slices.Delete(l.all, i, j)
	if i > 0 {
		return // the worker still reads the front
	}
	if cap(l.all) > len(l.first) {
		l.first[0] = Cause{} // it was copied when the list outgrew it
	}
	if cap(l.all) > roomyCauses && len(l.all) == 0 {
		l.all = nil
	}
}
