package rollout

// roll moves a Deployment from its old sets to the new one within its budget: what may be added is added first, and only
// if nothing may, old Pods are taken away.
func (w *draft) roll() {
	if w.next == nil {
		w.create(w.roomFor(0))
	}
	if !w.grow() && !w.shrink() {
		w.cleanUpWhenComplete()
	}
}

// grow brings the new set closer to the size that is wanted, and tells whether it has.
func (w *draft) grow() bool {
	size := w.next.size()
	to := w.wanted()
	if size < to {
		to = w.roomFor(size)
	}
	w.resize(w.next, to)
	return to != size
}

// roomFor is how large the new set may become from a size: as large as is wanted, as far as all sets together stay below
// the most there may be.
func (w *draft) roomFor(size int32) int32 {
	room := max(w.most()-total(w.sets), 0)
	return size + min(room, w.wanted()-size)
}

// shrink takes old Pods away as far as enough are available without them, and tells whether it has.
//
// What may go is what is above the least, less the Pods of the new set that are not available: they may never be. For
// instance, 10 replicas with a surge of 3 and 2 unavailable, of which the new set has 5 that crash: 13 - 8 - 5 = 0 old
// ones may go.
func (w *draft) shrink() bool {
	old := active(w.old())
	may := total(w.sets) - w.least() - (w.next.size() - w.next.available())
	if len(old) == 0 || may <= 0 {
		return false
	}
	gone := w.takeBroken(old, may)
	return w.takeSpare(old, may-gone)+gone > 0
}

// takeBroken takes from the old sets, oldest first, Pods that are not available, which would be in the way for ever. A
// ReplicaSet deletes those before others.
func (w *draft) takeBroken(old []*draftSet, most int32) (gone int32) {
	for _, s := range old {
		if !s.settled() {
			continue // it is not known how many are broken
		}
		n := min(most-gone, s.size()-s.available())
		w.resize(s, s.size()-n)
		gone += n
	}
	return gone
}

// takeSpare takes from the old sets, oldest first, as many as are available beyond the least.
func (w *draft) takeSpare(old []*draftSet, most int32) (gone int32) {
	most = min(most, available(w.sets)-w.least())
	for _, s := range old {
		n := min(most-gone, s.size())
		if n <= 0 {
			continue
		}
		w.resize(s, s.size()-n)
		gone += n
	}
	return gone
}
