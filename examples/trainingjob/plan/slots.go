package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// Replica identifies a replica of a job.
type Replica struct {
	Type  job.ReplicaType
	Index int
}

// slots assigns objects of one kind to replicas. A terminating object keeps its slot until it is gone, because its name
// is taken until then.
type slots[T metav1.Object] struct {
	taken   map[Replica]T
	surplus []T      // objects of replicas that are not wanted
	odd     []string // messages about ambiguous objects
}

// sortOut assigns objects to replicas by their labels. If several objects have one replica's labels, the one with the
// replica's name counts, or else the first by name. The order of the objects does not matter.
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

// replicaOf returns the replica to which an object's labels refer.
func replicaOf(o metav1.Object) (Replica, error) {
	labels := o.GetLabels()
	t := job.ReplicaType(labels[job.LabelType])
	index, err := strconv.Atoi(labels[job.LabelIndex])
	if err != nil || index < 0 || !slices.Contains(job.ReplicaTypes, t) {
		return Replica{}, fmt.Errorf("%s has labels of an unknown replica: %q %q", o.GetName(), t, labels[job.LabelIndex])
	}
	return Replica{Type: t, Index: index}, nil
}

// wanted returns the replicas that a job wants, in the order of their creation.
func wanted(j *job.TrainingJob) []Replica {
	var all []Replica
	for _, t := range job.ReplicaTypes {
		for i := range job.Count(j, t) {
			all = append(all, Replica{Type: t, Index: i})
		}
	}
	return all
}

// missing returns the replicas that have no object.
func (s slots[T]) missing(j *job.TrainingJob) []Replica {
	return slices.DeleteFunc(wanted(j), func(r Replica) bool {
		_, found := s.taken[r]
		return found
	})
}
