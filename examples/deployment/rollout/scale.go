package rollout

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// scaled reports whether the number of replicas has changed since the sets were last scaled. Sets that Recreate is
// about to scale to zero are not considered.
func (w *draft) scaled() bool {
	if len(active(w.sets)) > 1 && !w.rolling() {
		return false
	}
	return slices.ContainsFunc(active(w.sets), func(s *draftSet) bool {
		desired, known := desiredOf(s.ReplicaSet)
		return known && desired != w.wanted()
	})
}

// scale applies a changed number of replicas. It does not affect the progress of a rollout: each set keeps its
// proportion.
func (w *draft) scale() {
	if only := w.activeOrNewest(); only != nil {
		w.resize(only, w.wanted())
		if !w.deployment.Spec.Paused { // otherwise scaled would still return true; it is not called while the Deployment is paused
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

// activeOrNewest returns the only set with Pods. Without Pods it returns the set of the current template, or else the
// newest set. It returns nil if several sets have Pods.
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

// saturated reports whether the new set has all wanted Pods, and whether this was its size for the whole Deployment.
func (w *draft) saturated() bool {
	if w.next == nil {
		return false
	}
	desired, known := desiredOf(w.next.ReplicaSet)
	return known && desired == w.wanted() && w.next.size() == w.wanted() && w.next.available() == w.wanted()
}

// share divides an addition or a removal among the sets with Pods, in proportion to their sizes. Each set gets the
// current annotations, even if its size stays.
func (w *draft) share() {
	sets := active(w.sets)
	parts := make([]part, len(sets))
	for i, s := range sets {
		before, known := maxOf(s.ReplicaSet)
		if !known || before == 0 {
			before = w.deployment.Status.Replicas // the annotation is missing; this is the closest known number
		}
		parts[i] = part{size: s.size(), before: before, age: i}
	}
	most := w.maxTotal()
	if w.wanted() == 0 {
		most = 0
	}
	for i, size := range divide(parts, most) {
		w.resize(sets[i], size)
		w.keepNote(sets[i])
	}
}

func (w *draft) keepNote(s *draftSet) {
	if note(s.ReplicaSet, w.wanted(), w.maxTotal()) {
		s.changed = true
	}
}

// part is one of the sets among which divide divides.
type part struct {
	size   int32
	before int32 // the largest sum of all sizes when it got its size; zero means unknown
	age    int   // a higher number means newer
}

// divide returns new sizes whose sum is most. Each size changes in proportion to the whole, rounded, while the sum
// allows it. Larger sets come first. Of two equal sets the newer one grows first, and the older one shrinks first. The
// largest set gets the rest that rounding leaves.
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
	for _, i := range order { // the largest takes the whole rest, unless it is too small for a removal
		n := max(left, -sizes[i])
		sizes[i] += n
		left -= n
	}
	return sizes
}

// proportion returns the change of a part if the whole becomes most.
func proportion(p part, most int32) int32 {
	switch {
	case most == 0:
		return -p.size
	case p.before == 0:
		return 0
	}
	return int32(math.Round(float64(p.size)*float64(most)/float64(p.before))) - p.size
}
