package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// Replica is one of those that a job wants.
type Replica struct {
	Type  job.ReplicaType
	Index int
}

// slots are objects of one kind by the replica that they are for. What was told to end keeps its place until it is gone,
// for its name is taken as long.
type slots[T metav1.Object] struct {
	taken   map[Replica]T
	surplus []T      // for replicas that are not wanted any more
	odd     []string // what cannot be told, or twice
}

// sortOut finds each object's place by its labels. Of several that are one replica the one that has its name counts, else
// the first by name, in whatever order they come.
func sortOut[T metav1.Object](j *job.TrainingJob, objects []T) slots[T] {
	s := slots[T]{taken: map[Replica]T{}}
	objects = slices.SortedFunc(slices.Values(objects), func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, o := range objects {
		r, err := replicaOf(o)
		if err != nil {
			s.odd = append(s.odd, err.Error())
			continue
		}
		if r.Index >= job.Count(j, r.Type) {
			s.surplus = append(s.surplus, o)
			continue
		}
		other, twice := s.taken[r]
		if !twice {
			s.taken[r] = o
			continue
		}
		s.odd = append(s.odd, fmt.Sprintf("%s and %s are both %s %d", other.GetName(), o.GetName(), r.Type, r.Index))
		if o.GetName() == job.Name(j, r.Type, r.Index) {
			s.taken[r] = o
		}
	}
	return s
}

// replicaOf reads from labels which replica an object is for.
func replicaOf(o metav1.Object) (Replica, error) {
	labels := o.GetLabels()
	t := job.ReplicaType(labels[job.LabelType])
	index, err := strconv.Atoi(labels[job.LabelIndex])
	if err != nil || index < 0 || !slices.Contains(job.ReplicaTypes, t) {
		return Replica{}, fmt.Errorf("%s has labels that make it %q %q, which there is not", o.GetName(), t, labels[job.LabelIndex])
	}
	return Replica{Type: t, Index: index}, nil
}

// wanted are the replicas that a job wants, in the order in which they are made.
func wanted(j *job.TrainingJob) []Replica {
	var all []Replica
	for _, t := range job.ReplicaTypes {
		for i := range job.Count(j, t) {
			all = append(all, Replica{Type: t, Index: i})
		}
	}
	return all
}

// missing are the replicas that have no object.
func (s slots[T]) missing(j *job.TrainingJob) []Replica {
	return slices.DeleteFunc(wanted(j), func(r Replica) bool {
		_, found := s.taken[r]
		return found
	})
}
