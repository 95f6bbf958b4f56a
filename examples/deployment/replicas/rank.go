package replicas

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/examples/deployment/workload"
)

// costAnnotation lets a user choose which Pods are deleted first.
const costAnnotation = corev1.PodDeletionCost

// candidate is a Pod that may be deleted.
type candidate struct {
	pod    *workload.Pod
	nearby int // active related Pods on its node
}

// toDelete returns the n Pods whose loss costs least.
func toDelete(pods, related []*workload.Pod, n int, now time.Time) []*workload.Pod {
	onNode := map[string]int{}
	for _, p := range related {
		if workload.Active(p) {
			onNode[p.Spec.NodeName]++
		}
	}
	all := make([]candidate, len(pods))
	for i, p := range pods {
		all[i] = candidate{pod: p, nearby: onNode[p.Spec.NodeName]}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return compareForDeletion(a, b, now) })
	var chosen []*workload.Pod
	for _, c := range all[:min(n, len(all))] {
		chosen = append(chosen, c.pod)
	}
	return chosen
}

// compareForDeletion is negative if a is deleted before b. The first criterion that differs decides:
//
//   - a Pod without a node before one with a node
//   - pending before unknown before running
//   - not ready before ready
//   - a lower deletion cost before a higher one
//   - more related Pods on the node before fewer
//   - ready for a shorter time before longer
//   - more restarts before fewer
//   - younger before older
//
// Times are compared by their order of magnitude (KEP-2185). Otherwise the youngest Pods would always go, and these are
// often the ones that the last rollout has placed well.
func compareForDeletion(a, b candidate, now time.Time) int {
	sinceA, readyA := workload.Ready(a.pod)
	sinceB, readyB := workload.Ready(b.pod)
	order := cmp.Or(
		yesLast(a.pod.Spec.NodeName != "", b.pod.Spec.NodeName != ""),
		cmp.Compare(phase(a.pod), phase(b.pod)),
		yesLast(readyA, readyB),
		cmp.Compare(cost(a.pod), cost(b.pod)),
		cmp.Compare(b.nearby, a.nearby),
	)
	if order == 0 && readyA {
		order = cmp.Compare(magnitude(sinceA, now), magnitude(sinceB, now))
	}
	return cmp.Or(order,
		cmp.Compare(restarts(b.pod), restarts(a.pod)),
		cmp.Compare(magnitude(a.pod.CreationTimestamp.Time, now), magnitude(b.pod.CreationTimestamp.Time, now)),
		cmp.Compare(a.pod.UID, b.pod.UID), // random, but always the same
	)
}

func yesLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func phase(p *workload.Pod) int {
	switch p.Status.Phase {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	}
	return 0
}

// cost returns the deletion cost of a Pod. An annotation that cannot be parsed counts as zero.
func cost(p *workload.Pod) int32 {
	n, err := strconv.ParseInt(p.Annotations[costAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func restarts(p *workload.Pod) (most int32) {
	for _, s := range p.Status.ContainerStatuses {
		most = max(most, s.RestartCount)
	}
	return most
}

// magnitude returns the order of magnitude of an age: the number of bits of its seconds. An unknown time counts as very
// old.
func magnitude(since, now time.Time) int {
	if since.IsZero() {
		return math.MaxInt
	}
	return bits.Len64(uint64(max(now.Sub(since)/time.Second, 0)))
}
