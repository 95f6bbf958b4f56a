package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Finished reports whether a Pod has ended and will not run again.
func Finished(p *Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Active reports whether a Pod counts as a replica: it is neither finished nor being deleted.
func Active(p *Pod) bool { return !Finished(p) && p.DeletionTimestamp == nil }

// Terminating reports whether a Pod is being deleted and has not finished.
func Terminating(p *Pod) bool { return !Finished(p) && p.DeletionTimestamp != nil }

// Ready reports whether a Pod is ready, and since when.
func Ready(p *Pod) (since time.Time, ready bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// Available reports whether a Pod has been ready for minReadySeconds. For a Pod that is ready but not available, left
// is the remaining time.
func Available(p *Pod, minReadySeconds int32, now time.Time) (left time.Duration, available bool) {
	since, ready := Ready(p)
	if !ready {
		return 0, false
	}
	if minReadySeconds == 0 {
		return 0, true
	}
	left = since.Add(time.Duration(minReadySeconds) * time.Second).Sub(now)
	if left <= 0 && !since.IsZero() {
		return 0, true
	}
	return max(left, 0), false
}
