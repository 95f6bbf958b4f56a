package rollout

import (
	"cmp"
	"slices"
)

// cleanUpWhenComplete cleans up once a rollout is over, by what the Deployment's status says.
func (w *draft) cleanUpWhenComplete() {
	if complete(w.deployment, &w.deployment.Status) {
		w.cleanUp()
	}
}

// cleanUp deletes old sets beyond the history that is to be kept, those of the lowest revisions first. One that still has
// Pods, or has not said that it has none, stays.
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
		s.doomed = s.size() == 0 && s.Status.Replicas == 0 && s.settled() && !s.changed
	}
}
