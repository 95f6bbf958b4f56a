package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

func TestDivide(t *testing.T) {
	for name, c := range map[string]struct {
		parts []part // oldest first
		most  int32
		want  []int32
	}{
		"in proportion":                    {[]part{{8, 13, 0}, {5, 13, 1}}, 26, []int32{16, 10}},
		"rounded, the rest to the largest": {[]part{{8, 13, 0}, {5, 13, 1}}, 25, []int32{15, 10}},
		"equal sizes: the newer grows":     {[]part{{5, 10, 0}, {5, 10, 1}}, 11, []int32{5, 6}},
		"equal sizes: the older shrinks":   {[]part{{5, 10, 0}, {5, 10, 1}}, 9, []int32{4, 5}},
		"to nothing":                       {[]part{{8, 13, 0}, {5, 13, 1}}, 0, []int32{0, 0}},
		"no change":                        {[]part{{8, 10, 0}, {5, 10, 1}}, 13, []int32{8, 5}},
		"unknown former sum: the largest":  {[]part{{2, 0, 0}, {5, 0, 1}, {3, 0, 2}}, 20, []int32{2, 15, 3}},
		"smaller, with stale annotations":  {[]part{{8, 2, 0}, {5, 2, 1}}, 12, []int32{7, 5}},
		"larger, with stale annotations":   {[]part{{8, 100, 0}, {5, 100, 1}}, 14, []int32{9, 5}},
		"none":                             {nil, 5, []int32{}},
	} {
		require.Equal(t, c.want, divide(c.parts, c.most), name)
	}
}

// TestDivideIsFair divides numbers of every size. The sum is exact, no size is negative, and no size changes in the
// wrong direction. With correct annotations, only the largest set may differ from its exact share by more than one.
func TestDivideIsFair(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 2))
		parts := make([]part, 1+random.IntN(5))
		var sum, largest int32
		for i := range parts {
			parts[i] = part{size: 1 + random.Int32N(1<<random.IntN(20)), age: i}
			sum += parts[i].size
			largest = max(largest, parts[i].size)
		}
		honest := random.IntN(2) == 0
		for i := range parts {
			parts[i].before = sum
			if !honest {
				parts[i].before = random.Int32N(2 * sum)
			}
		}
		most := random.Int32N(3 * sum)
		sizes := divide(parts, most)
		var got int32
		for i, size := range sizes {
			got += size
			require.GreaterOrEqual(t, size, int32(0), "seed %d", seed)
			if most >= sum {
				require.GreaterOrEqual(t, size, parts[i].size, "seed %d", seed)
			} else {
				require.LessOrEqual(t, size, parts[i].size, "seed %d", seed)
			}
			if honest && parts[i].size < largest {
				exact := float64(parts[i].size) * float64(most) / float64(sum)
				require.InDelta(t, exact, size, float64(len(parts)), "seed %d", seed)
			}
		}
		require.Equal(t, most, got, "seed %d: %v", seed, parts)
	}
}

func TestScale(t *testing.T) {
	// Each case scales a Deployment from 10 to 20. During the rollout, 3 more or 2 fewer are allowed.
	scaled := func(change func(d *appsv1.Deployment), sizes ...[2]int32) []string {
		d := newDeployment(10, 3, 2)
		var all []*appsv1.ReplicaSet
		images := []string{"v1", "new", "v3"}
		for i, n := range sizes {
			all = append(all, set(d, images[i], int32(i+1), n[0], n[1]))
		}
		d.Annotations[revisionAnnotation] = "3"
		n := int32(20)
		d.Spec.Replicas = &n
		if change != nil {
			change(d)
		}
		return decide(at(d, all...)).lines()
	}
	require.Equal(t, []string{"new 10 to 20"}, scaled(nil, [2]int32{0, 0}, [2]int32{10, 10}), "the only one with Pods")
	require.Equal(t, []string{"v1 10 to 20"}, scaled(nil, [2]int32{10, 10}, [2]int32{0, 0}), "the only set with Pods, an old one")
	require.Equal(t, []string{"new 5 to 9", "v1 8 to 14"}, scaled(nil, [2]int32{8, 8}, [2]int32{5, 0}))
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	require.Equal(t, []string{"new 5 to 9", "v1 8 to 14"}, scaled(paused, [2]int32{8, 8}, [2]int32{5, 0}))
	require.Equal(t, []string{"new 0 to 20"}, scaled(paused, [2]int32{0, 0}, [2]int32{0, 0}, [2]int32{0, 0}), "no Pods: the new set")
	other := func(d *appsv1.Deployment) {
		paused(d)
		d.Spec.Template = template("other")
	}
	require.Equal(t, []string{"v3 0 to 20"}, scaled(other, [2]int32{0, 0}, [2]int32{0, 0}, [2]int32{0, 0}), "no Pods and no new set: the newest")

	d := newDeployment(10, 3, 2)
	d.Annotations[revisionAnnotation] = "2"
	all := []*appsv1.ReplicaSet{set(d, "v1", 1, 4, 4), set(d, "new", 2, 10, 10)}
	all[0].Annotations[desiredAnnotation] = "7" // like an adopted set
	require.Equal(t, []string{"v1 4 to 0"}, decide(at(d, all...)).lines(), "the new set has all Pods, so the old sets can go")
	all[1].Status.AvailableReplicas = 9
	require.Equal(t, []string{"new 10 to 9", "v1 4 to 4"}[:1], decide(at(d, all...)).lines()[:1])
}

func TestScaledIsForgotten(t *testing.T) {
	d := newDeployment(10, 3, 2)
	d.Annotations[revisionAnnotation] = "2"
	next := set(d, "new", 2, 10, 10)
	next.Annotations[desiredAnnotation], next.Annotations[maxAnnotation] = "7", "8"
	todo := decide(at(d, next))
	require.Equal(t, []string{"annotate new"}, todo.lines(), "a size that is already right is recorded, too")
	require.Equal(t, "10", todo.changes[0].to.Annotations[desiredAnnotation])
	require.Equal(t, "13", todo.changes[0].to.Annotations[maxAnnotation])
	require.Empty(t, decide(at(d, todo.changes[0].to)).lines())
}

// TestPausedAndNotScaledWritesNothing has a set of the right size with any annotations. A paused Deployment does not
// need them, so there is no write.
func TestPausedAndNotScaledWritesNothing(t *testing.T) {
	for name, notes := range map[string][2]string{
		"current annotations": {"10", "13"}, "annotations of another budget": {"10", "11"}, "annotations of another size": {"7", "8"}, "none": {},
	} {
		d := newDeployment(10, 3, 2)
		d.Annotations[revisionAnnotation] = "2"
		d.Spec.Paused = true
		next := set(d, "new", 2, 10, 10)
		delete(next.Annotations, desiredAnnotation)
		delete(next.Annotations, maxAnnotation)
		if notes[0] != "" {
			next.Annotations[desiredAnnotation], next.Annotations[maxAnnotation] = notes[0], notes[1]
		}
		require.Empty(t, decide(at(d, next)).lines(), name)
		n := int32(12)
		d.Spec.Replicas = &n
		todo := decide(at(d, next))
		require.Equal(t, []string{"new 10 to 12"}, todo.lines(), name)
		require.Equal(t, "15", todo.changes[0].to.Annotations[maxAnnotation], name)
	}
}
