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

// causeList holds the causes of an entry. Adds append to it while the worker reads the front. The zero value is empty.
//
// Rule: a single cause is in first, unless a worker has the key when it is added. Reason: most keys have one cause, and
// a chunk of lists of 96 bytes fills its block of memory. Price: the second cause of a key allocates twice.
type causeList struct {
	first [1]Cause    // of the worker that has the key, or else of the pending adds; zero without a cause
	more  *moreCauses // all causes, if first was not enough; else nil
}

// moreCauses holds any number of causes.
type moreCauses struct {
	all     []Cause
	held    int32 // number of causes at the front that the worker reads until Done; the others belong to the pending adds
	omitted int32 // number of further causes of the pending adds
}

// add keeps a cause of a pending add, up to limit of them. processing reports whether a worker has the key.
func (l *causeList) add(c *Cause, limit int, processing bool) {
	if l.more == nil {
		if !processing && l.first[0] == (Cause{}) {
			l.first[0] = *c
			return
		}
		l.grow(processing)
	}
	m := l.more
	if len(m.all)-int(m.held) >= limit {
		m.omitted++
		return
	}
	m.all = append(m.all, *c)
}

// grow makes room for more than one cause. A worker keeps reading first.
func (l *causeList) grow(processing bool) {
	l.more = &moreCauses{}
	if l.first[0] == (Cause{}) {
		return
	}
	l.more.all = append(l.more.all, l.first[0])
	if processing {
		l.more.held = 1
	} else {
		l.first[0] = Cause{}
	}
}

// handOut gives the causes of the pending adds to the worker.
func (l *causeList) handOut() (causes []Cause, omitted int) {
	m := l.more
	switch {
	case m != nil:
		omitted, m.held, m.omitted = int(m.omitted), int32(len(m.all)), 0
		return slices.Clip(m.all), omitted
	case l.first[0] != (Cause{}):
		return l.first[:], 0
	}
	return nil, 0
}

// takeBack removes the causes that the worker had.
func (l *causeList) takeBack() {
	l.first[0] = Cause{}
	if l.more != nil {
		l.remove(0, int(l.more.held))
	}
}

// drop removes the causes of the pending adds. processing reports whether a worker has the key.
func (l *causeList) drop(processing bool) {
	switch {
	case l.more != nil:
		l.more.omitted = 0
		l.remove(int(l.more.held), len(l.more.all))
	case !processing:
		l.first[0] = Cause{}
	}
}

// remove removes the causes of more from index i up to j, including their strings. It keeps the memory for the next
// causes, unless that is much.
func (l *causeList) remove(i, j int) {
	m := l.more
	m.all = slices.Delete(m.all, i, j)
	if i > 0 {
		return // the worker still reads the front
	}
	m.held = 0
	if cap(m.all) > roomyCauses && len(m.all) == 0 {
		l.more = nil
	}
}
