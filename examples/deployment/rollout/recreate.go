package rollout

import "github.com/leatproject/leat/examples/deployment/workload"

// recreate empties the old sets, waits until the last of their Pods has ended, and only then fills the new one.
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

// oldPodsRun tells whether a Pod of an old set has not ended: by what the sets say, and by what is seen of the Pods, which
// knows more when they are slow to end.
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
