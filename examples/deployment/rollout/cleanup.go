package rollout

import (
	"cmp"
	"slices"
)

// cleanUpWhenComplete cleans up if the status says that the rollout is complete.
func (w *draft) cleanUpWhenComplete() {
	if complete(w.deployment, &w.deployment.Status) {
		w.cleanUp()
	}
}

// cleanUp deletes old sets beyond the history limit, the lowest revisions first. It keeps a set that has Pods, or whose
// status is not up to date.
func (w *draft) cleanUp() {
	limit, limited := historyLimit(w.deployment)
	if !limited {
		return
	}
	old := slices.DeleteFunc(w.old(), func(s *draftSet) bool { return s.DeletionTimestamp != nil })
	slices.SortStableFunc(old, func(a, b *draftSet) int {
		return cmp.Compare(revisionOf(a.ReplicaSet), revisionOf(b.ReplicaSet))
	})
	for _, s := range old[:max(len(old)-limit, 0)] {
		s.deleted = s.size() == 0 && s.Status.Replicas == 0 && s.settled() && !s.changed
	}
}
