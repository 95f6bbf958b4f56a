package rollout

import "github.com/leatproject/leat/examples/deployment/workload"

// recreate scales the old sets to zero, waits until their last Pod is gone, and then scales up the new set.
func (w *draft) recreate() {
	old := active(w.old())
	for _, s := range old {
		w.resize(s, 0)
	}
	if len(old) > 0 || w.oldPodsRun() {
		return
	}
	if w.next == nil {
		w.create(w.wanted())
	}
	w.resize(w.next, w.wanted())
	w.cleanUpWhenComplete()
}

// oldPodsRun reports whether a Pod of an old set still exists. It checks the status of the sets and the Pods in the
// cache, because the cache also has Pods that terminate slowly.
func (w *draft) oldPodsRun() bool {
	for _, s := range w.old() {
		if s.Status.Replicas > 0 {
			return true
		}
		for _, p := range w.pods[s.UID] {
			if !workload.Finished(p) {
				return true
			}
		}
	}
	return false
}
