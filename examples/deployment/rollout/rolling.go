package rollout

// roll takes the next step of a rolling update. It first creates the new Pods that the budget allows. Only if it allows
// none, it removes old Pods.
func (w *draft) roll() {
	if w.next == nil {
		w.create(w.roomFor(0))
	}
	if !w.grow() && !w.shrink() {
		w.cleanUpWhenComplete()
	}
}

// grow brings the new set closer to the wanted size, and reports whether it changed the size.
func (w *draft) grow() bool {
	size := w.next.size()
	to := w.wanted()
	if size < to {
		to = w.roomFor(size)
	}
	w.resize(w.next, to)
	return to != size
}

// roomFor returns the size that the new set may grow to: at most the wanted size, and only while the sum stays within
// maxTotal.
func (w *draft) roomFor(size int32) int32 {
	room := max(w.maxTotal()-total(w.sets), 0)
	return size + min(room, w.wanted()-size)
}

// shrink removes old Pods if enough others are available, and reports whether it did.
//
// The number that may go is the sum above minAvailable, less the unavailable Pods of the new set, because they may
// never be available. Example: 10 replicas, maxSurge 3, maxUnavailable 2. The new set has 5 Pods, and all of them
// crash. 13 - 8 - 5 = 0 old Pods may go.
func (w *draft) shrink() bool {
	old := active(w.old())
	may := total(w.sets) - w.minAvailable() - (w.next.size() - w.next.available())
	if len(old) == 0 || may <= 0 {
		return false
	}
	gone := w.removeUnavailable(old, may)
	return w.removeSurplus(old, may-gone)+gone > 0
}

// removeUnavailable removes unavailable Pods from the old sets, oldest set first, because they would block the rollout
// forever. A ReplicaSet deletes unavailable Pods first.
func (w *draft) removeUnavailable(old []*draftSet, most int32) (gone int32) {
	for _, s := range old {
		if !s.settled() {
			continue // it is not known how many are unavailable
		}
		n := min(most-gone, s.size()-s.available())
		w.resize(s, s.size()-n)
		gone += n
	}
	return gone
}

// removeSurplus removes available Pods above minAvailable from the old sets, oldest set first.
func (w *draft) removeSurplus(old []*draftSet, most int32) (gone int32) {
	most = min(most, available(w.sets)-w.minAvailable())
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
