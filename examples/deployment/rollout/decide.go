package rollout

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/examples/deployment/workload"
)

// observed is the input of a decision. decide does not change it.
type observed struct {
	deployment *appsv1.Deployment
	sets       []*appsv1.ReplicaSet          // the sets of the Deployment
	pods       map[types.UID][]*workload.Pod // the Pods of each set
	now        time.Time
}

// decision is the output. The reconciler makes the changes in order, up to the first failure. Then it writes the
// status.
type decision struct {
	changes  []change
	rollback *rollback // replaces everything else
	status   appsv1.DeploymentStatus
	revision string        // for the Deployment's annotation; empty means no change
	after    time.Duration // time until the next reconcile without an event; zero means none
}

// change is a change of one ReplicaSet.
type change struct {
	was *appsv1.ReplicaSet // nil if the set is to be created
	to  *appsv1.ReplicaSet // nil if the set is to be deleted
}

// decide is the whole controller except for reading and writing. The first row that applies decides:
//
//	a Deployment                              its sets
//	is being deleted                          stay; only the status is written
//	has a rollback request and is not paused  record the current template, then the rollback is made
//	is paused                                 are scaled and cleaned up
//	was scaled                                are scaled
//	has the strategy Recreate                 are scaled to zero, then the new one is scaled up
//	has the strategy RollingUpdate            are scaled step by step within the budget
//
// check must have found no error in the Deployment.
func decide(o observed) decision {
	w := newDraft(o)
	switch {
	case o.deployment.DeletionTimestamp != nil:
		return w.decided(w.plainStatus())
	case wantsRollback(o.deployment) && !o.deployment.Spec.Paused:
		if w.recorded() {
			return decision{rollback: w.rollback()}
		}
		return w.decided(w.plainStatus())
	}
	w.notePause()
	w.adopt()
	switch {
	case o.deployment.Spec.Paused:
		w.scale()
		if !wantsRollback(o.deployment) {
			w.cleanUp()
		}
		return w.decided(w.plainStatus())
	case w.scaled():
		w.scale()
		return w.decided(w.plainStatus())
	case strategy(o.deployment) == appsv1.RecreateDeploymentStrategyType:
		w.recreate()
	default:
		w.roll()
	}
	return w.decided(w.rolloutStatus())
}

// draft is a decision in progress.
type draft struct {
	observed
	budget budget
	// conditions are the conditions that the status will have.
	conditions []appsv1.DeploymentCondition
	sets       []*draftSet // oldest first
	next       *draftSet   // the set of the current template; nil if no set has it
}

// draftSet is a ReplicaSet with its changes.
type draftSet struct {
	*appsv1.ReplicaSet                    // a copy, which may be changed
	was                *appsv1.ReplicaSet // as it is now; nil if it does not exist yet
	changed, deleted   bool
}

func newDraft(o observed) *draft {
	w := &draft{observed: o, conditions: slices.Clone(o.deployment.Status.Conditions)}
	w.budget, _ = budgetOf(o.deployment) // check has handled the error
	sorted := slices.SortedFunc(slices.Values(o.sets), older)
	for _, s := range sorted {
		w.sets = append(w.sets, &draftSet{ReplicaSet: s.DeepCopy(), was: s})
	}
	// Several sets can have the template if their hashes were computed in different ways. The oldest set counts.
	at := slices.IndexFunc(w.sets, func(s *draftSet) bool {
		return sameTemplate(&s.Spec.Template, &o.deployment.Spec.Template)
	})
	if at >= 0 {
		w.next = w.sets[at]
	}
	return w
}

// older compares ReplicaSets by age, and then by name.
func older(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// old returns the sets of earlier templates, oldest first.
func (w *draft) old() []*draftSet {
	return slices.DeleteFunc(slices.Clone(w.sets), func(s *draftSet) bool { return s == w.next })
}

// active returns the sets that want Pods.
func active(sets []*draftSet) []*draftSet {
	return slices.DeleteFunc(slices.Clone(sets), func(s *draftSet) bool { return s.size() == 0 })
}

// objects returns the ReplicaSets as they will be.
func objects(sets []*draftSet) []*appsv1.ReplicaSet {
	var all []*appsv1.ReplicaSet
	for _, s := range sets {
		all = append(all, s.ReplicaSet)
	}
	return all
}

func total(sets []*draftSet) (sum int32) {
	for _, s := range sets {
		sum += s.size()
	}
	return sum
}

// wanted returns how many Pods the Deployment wants. maxTotal is the largest number during a rollout, and minAvailable
// the smallest number of available Pods.
func (w *draft) wanted() int32       { return replicas(w.deployment) }
func (w *draft) maxTotal() int32     { return w.wanted() + w.budget.surge }
func (w *draft) minAvailable() int32 { return w.wanted() - w.budget.unavailable }

func (s *draftSet) size() int32 { return sizeOf(s.ReplicaSet) }

// available returns how many Pods of a set are certainly available after the change. A set whose status is not up to
// date counts as zero: it may be deleting Pods that its status still counts.
func (s *draftSet) available() int32 {
	if !s.settled() {
		return 0
	}
	return min(s.Status.AvailableReplicas, s.size())
}

// settled reports whether the status of a set is about its current size.
func (s *draftSet) settled() bool {
	return s.was != nil && s.Status.ObservedGeneration >= s.Generation
}

func available(sets []*draftSet) (sum int32) {
	for _, s := range sets {
		sum += s.available()
	}
	return sum
}

// resize changes the size of a set. It also records the Deployment's current sizes in the set's annotations.
func (w *draft) resize(s *draftSet, size int32) {
	if s.size() == size {
		return
	}
	s.Spec.Replicas = &size
	note(s.ReplicaSet, w.wanted(), w.maxTotal())
	s.changed = true
}

// adopt updates the annotations, the revision and minReadySeconds of the set of the current template, if there is one.
func (w *draft) adopt() {
	if w.next == nil {
		return
	}
	if annotate(w.next.ReplicaSet, w.deployment, newestRevision(objects(w.old()))+1) {
		w.next.changed = true
	}
	if w.next.Spec.MinReadySeconds != w.deployment.Spec.MinReadySeconds {
		w.next.Spec.MinReadySeconds, w.next.changed = w.deployment.Spec.MinReadySeconds, true
	}
	w.noteFound()
}

// recorded reports whether the current template has a revision, and creates one otherwise. Without a revision, a
// rollback would lose the template, and "the last revision" would be the wrong one. A template has no revision yet if
// it was changed together with the request, or while the Deployment was paused. Its set gets no Pods, because the
// rollback follows at once.
func (w *draft) recorded() bool {
	if w.next == nil {
		w.create(0)
		return false
	}
	w.adopt()
	return !w.next.changed
}

// create adds a set for the current template, with the given size.
func (w *draft) create(size int32) {
	w.next = &draftSet{ReplicaSet: newSet(w.deployment)}
	w.next.Spec.Replicas = &size
	annotate(w.next.ReplicaSet, w.deployment, newestRevision(objects(w.sets))+1)
	note(w.next.ReplicaSet, w.wanted(), w.maxTotal())
	w.sets = append(w.sets, w.next)
	w.noteCreated()
}

// decided returns the decision that the draft has reached.
func (w *draft) decided(status appsv1.DeploymentStatus) decision {
	d := decision{status: status, after: w.nextLook(&status)}
	for _, s := range w.newFirst() {
		switch {
		case s.deleted:
			d.changes = append(d.changes, change{was: s.was})
		case s.changed, s.was == nil:
			d.changes = append(d.changes, change{was: s.was, to: s.ReplicaSet})
		}
	}
	if w.next != nil && w.deployment.DeletionTimestamp == nil {
		if revision := w.next.Annotations[revisionAnnotation]; revision != w.deployment.Annotations[revisionAnnotation] {
			d.revision = revision
		}
	}
	return d
}

// newFirst returns the sets in the order of their writes. If the new set cannot be written, the old ones stay as they
// are. The additions of a decision never depend on its removals.
func (w *draft) newFirst() []*draftSet {
	if w.next == nil {
		return w.sets
	}
	return append([]*draftSet{w.next}, w.old()...)
}
