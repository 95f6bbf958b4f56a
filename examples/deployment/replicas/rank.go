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

// costAnnotation lets a user say which Pods are to go first.
const costAnnotation = corev1.PodDeletionCost

// candidate is a Pod that might be deleted, and what counts in that.
type candidate struct {
	pod    *workload.Pod
	nearby int // how many active Pods of its kin are on its node
}

// toDelete picks the n Pods whose loss hurts least.
func toDelete(pods, kin []*workload.Pod, n int, now time.Time) []*workload.Pod {
	onNode := map[string]int{}
	for _, p := range kin {
		if workload.Active(p) {
			onNode[p.Spec.NodeName]++
		}
	}
	all := make([]candidate, len(pods))
	for i, p := range pods {
		all[i] = candidate{pod: p, nearby: onNode[p.Spec.NodeName]}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return sooner(a, b, now) })
	var chosen []*workload.Pod
	for _, c := range all[:min(n, len(all))] {
		chosen = append(chosen, c.pod)
	}
	return chosen
}

// sooner is negative where a goes before b. What comes first decides: on no node before on one; pending, then unknown,
// then running; not ready before ready; cheap before dear; where many are before where few are; ready for a shorter time;
// restarted more often; younger.
//
// Times are compared by their order of magnitude (KEP-2185): otherwise the youngest would always go, which are often those
// that the last rollout has put where they should be.
func sooner(a, b candidate, now time.Time) int {
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
		cmp.Compare(a.pod.UID, b.pod.UID), // which is random, and the same each time
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

// cost is zero where the annotation cannot be read, as validation has it.
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

// magnitude is the order of magnitude of an age: the length of its seconds in binary. A time that is not known is of
// yesterday and before.
func magnitude(since, now time.Time) int {
	if since.IsZero() {
		return math.MaxInt
	}
	return bits.Len64(uint64(max(now.Sub(since)/time.Second, 0)))
}
