package rollout

import (
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The annotations by which Deployments and their ReplicaSets are numbered. kubectl reads them.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
	rollbackAnnotation = appsv1.DeprecatedRollbackTo
)

// maxHistory is how many bytes of former revisions are remembered.
const maxHistory = 2000

// isOwn tells whether an annotation belongs to one object and is not passed on between a Deployment and its ReplicaSets.
func isOwn(annotation string) bool {
	switch annotation {
	case revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation, rollbackAnnotation,
		corev1.LastAppliedConfigAnnotation:
		return true
	}
	return false
}

// revisionOf is the number of a ReplicaSet; zero is one that has none, or none that can be read.
func revisionOf(s *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(s.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// newestRevision is the highest number of any.
func newestRevision(sets []*appsv1.ReplicaSet) (newest int64) {
	for _, s := range sets {
		newest = max(newest, revisionOf(s))
	}
	return newest
}

// lastRevision is the highest but one: what a rollback without a number goes to. Zero is that there is none.
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

// annotate gives the ReplicaSet of the present template what it has to say: the annotations of its Deployment, and its
// number, which is the highest. One that was numbered before, and is rolled back to, remembers its former number. It
// tells whether anything changed.
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

// remember adds a revision to a list of them, and forgets the oldest where the list grows too long.
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

// desiredOf is how many replicas the Deployment wanted when a ReplicaSet was last scaled.
func desiredOf(s *appsv1.ReplicaSet) (int32, bool) { return count(s, desiredAnnotation) }

// maxOf is how many there could have been of all its ReplicaSets then.
func maxOf(s *appsv1.ReplicaSet) (int32, bool) { return count(s, maxAnnotation) }

func count(s *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(s.Annotations[annotation], 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}

// note writes both into a ReplicaSet and tells whether that changed anything.
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
