package rollout

import (
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The annotations with the revisions of Deployments and ReplicaSets. kubectl reads them.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
	rollbackAnnotation = appsv1.DeprecatedRollbackTo
)

// maxHistory is the largest length of the list of earlier revisions, in bytes.
const maxHistory = 2000

// isOwn reports whether an annotation is about one object and is not copied between a Deployment and its ReplicaSets.
func isOwn(annotation string) bool {
	switch annotation {
	case revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation, rollbackAnnotation,
		corev1.LastAppliedConfigAnnotation:
		return true
	}
	return false
}

// revisionOf returns the revision of a ReplicaSet. It is zero if the annotation is missing or cannot be parsed.
func revisionOf(s *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(s.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// newestRevision returns the highest revision.
func newestRevision(sets []*appsv1.ReplicaSet) (newest int64) {
	for _, s := range sets {
		newest = max(newest, revisionOf(s))
	}
	return newest
}

// lastRevision returns the second highest revision, to which a rollback without a number goes. It is zero if there is
// only one revision.
func lastRevision(sets []*appsv1.ReplicaSet) (last int64) {
	var newest int64
	for _, s := range sets {
		switch n := revisionOf(s); {
		case n >= newest:
			newest, last = n, newest
		case n > last:
			last = n
		}
	}
	return last
}

// annotate copies the annotations of a Deployment to the ReplicaSet of the current template, and sets the revision,
// which is the highest. If the set had another revision before, annotate adds that to the list of earlier revisions. It
// reports whether the annotations changed.
func annotate(s *appsv1.ReplicaSet, d *appsv1.Deployment, newest int64) (changed bool) {
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	for name, value := range d.Annotations {
		if have, there := s.Annotations[name]; !isOwn(name) && (!there || have != value) {
			s.Annotations[name], changed = value, true
		}
	}
	was := revisionOf(s)
	if was >= newest {
		return changed
	}
	if was > 0 {
		s.Annotations[historyAnnotation] = remember(s.Annotations[historyAnnotation], strconv.FormatInt(was, 10))
	}
	s.Annotations[revisionAnnotation] = strconv.FormatInt(newest, 10)
	return true
}

// remember adds a revision to the list of earlier revisions, and drops the oldest ones if the list gets too long.
func remember(history, revision string) string {
	if history == "" {
		return revision
	}
	history += "," + revision
	for len(history) > maxHistory {
		_, history, _ = strings.Cut(history, ",")
	}
	return history
}

// desiredOf returns how many replicas the Deployment wanted when the ReplicaSet was last scaled.
func desiredOf(s *appsv1.ReplicaSet) (int32, bool) { return count(s, desiredAnnotation) }

// maxOf returns the largest sum of all sizes when the ReplicaSet was last scaled.
func maxOf(s *appsv1.ReplicaSet) (int32, bool) { return count(s, maxAnnotation) }

func count(s *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(s.Annotations[annotation], 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}

// note writes both annotations and reports whether they changed.
func note(s *appsv1.ReplicaSet, desired, most int32) (changed bool) {
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	for annotation, n := range map[string]int32{desiredAnnotation: desired, maxAnnotation: most} {
		if text := strconv.Itoa(int(n)); s.Annotations[annotation] != text {
			s.Annotations[annotation], changed = text, true
		}
	}
	return changed
}
