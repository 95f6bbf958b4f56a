package rollout

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// scaled tells whether the Deployment wants another number of replicas than when its sets were scaled last. Of the sets
// that Recreate is about to empty none has a part to keep.
func (w *draft) scaled() bool {
	if len(active(w.sets)) > 1 && !w.rolling() {
		return false
	}
	return slices.ContainsFunc(active(w.sets), func(s *draftSet) bool {
		desired, known := desiredOf(s.ReplicaSet)
		return known && desired != w.wanted()
	})
}

// scale follows a change of the number of replicas. A rollout that is under way is neither hastened nor held up by it:
// each set keeps its part.
func (w *draft) scale() {
	if only := w.activeOrNewest(); only != nil {
		w.resize(only, w.wanted())
		if !w.deployment.Spec.Paused { // scaled asks for the note again otherwise; paused, there is nothing that asks
			w.keepNote(only)
		}
		return
	}
	switch old := active(w.old()); {
	case len(w.sets) == 0:
	case w.saturated():
		for _, s := range old {
			w.resize(s, 0)
		}
	case w.rolling():
		w.share()
	}
}

func (w *draft) rolling() bool {
	return strategy(w.deployment) == appsv1.RollingUpdateDeploymentStrategyType
}

// activeOrNewest is the only set with Pods or, if none has any, the one of the present template, or else the newest; nil
// if more than one has Pods.
func (w *draft) activeOrNewest() *draftSet {
	switch some := active(w.sets); {
	case len(some) == 1:
		return some[0]
	case len(some) > 1 || len(w.sets) == 0:
		return nil
	case w.next != nil:
		return w.next
	}
	return w.sets[len(w.sets)-1]
}

// saturated tells whether the new set has all the Pods that are wanted, and had been told of as many.
func (w *draft) saturated() bool {
	if w.next == nil {
		return false
	}
	desired, known := desiredOf(w.next.ReplicaSet)
	return known && desired == w.wanted() && w.next.size() == w.wanted() && w.next.available() == w.wanted()
}

// share divides what may be added, or must be taken away, among the sets with Pods, by their size. Every one of them
// notes what there may be now, whether its size changes or not.
func (w *draft) share() {
	sets := active(w.sets)
	parts := make([]part, len(sets))
	for i, s := range sets {
		before, known := maxOf(s.ReplicaSet)
		if !known || before == 0 {
			before = w.deployment.Status.Replicas // the annotation is gone: the closest that is known
		}
		parts[i] = part{size: s.size(), before: before, age: i}
	}
	most := w.most()
	if w.wanted() == 0 {
		most = 0
	}
	for i, size := range divide(parts, most) {
		w.resize(sets[i], size)
		w.keepNote(sets[i])
	}
}

func (w *draft) keepNote(s *draftSet) {
	if note(s.ReplicaSet, w.wanted(), w.most()) {
		s.changed = true
	}
}

// part is the share that one set has in a Deployment.
type part struct {
	size   int32
	before int32 // the most that all sets together could have when it got that size; zero is not known
	age    int   // higher is newer
}

// divide returns new sizes whose sum is most. Each part grows or shrinks as the whole does, rounded, as far as the sum
// allows, from the largest to the smallest; of parts of one size the newer grow first, and the older shrink first. The
// largest gets what is left over by the rounding.
func divide(parts []part, most int32) []int32 {
	sizes := make([]int32, len(parts))
	order := make([]int, len(parts))
	add := most
	for i, p := range parts {
		sizes[i], order[i] = p.size, i
		add -= p.size
	}
	if add == 0 || len(parts) == 0 {
		return sizes
	}
	slices.SortFunc(order, func(a, b int) int {
		byAge := cmp.Compare(parts[a].age, parts[b].age)
		if add > 0 {
			byAge = -byAge
		}
		return cmp.Or(cmp.Compare(parts[b].size, parts[a].size), byAge)
	})
	left := add
	for _, i := range order {
		n := proportion(parts[i], most)
		if add > 0 {
			n = max(min(n, left), 0)
		} else {
			n = min(max(n, left), 0)
		}
		sizes[i] += n
		left -= n
	}
	for _, i := range order { // the largest alone, unless it is not large enough to give what is left
		n := max(left, -sizes[i])
		sizes[i] += n
		left -= n
	}
	return sizes
}

// proportion is by how much a part changes when the whole becomes most.
func proportion(p part, most int32) int32 {
	switch {
	case most == 0:
		return -p.size
	case p.before == 0:
		return 0
	}
	return int32(math.Round(float64(p.size)*float64(most)/float64(p.before))) - p.size
}
