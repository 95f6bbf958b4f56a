package rollout

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/examples/deployment/workload"
)

// observed is everything that a decision is made from. Nothing of it is changed.
type observed struct {
	deployment *appsv1.Deployment
	sets       []*appsv1.ReplicaSet          // those that are the Deployment's
	pods       map[types.UID][]*workload.Pod // of each of them
	now        time.Time
}

// decision is what is to be done. The changes are made in their order, the first that fails being the last that is
// tried; then what the Deployment says of itself is written.
type decision struct {
	changes  []change
	rollback *rollback // instead of anything else
	status   appsv1.DeploymentStatus
	revision string        // for the Deployment's annotation; empty leaves it as it is
	after    time.Duration // when to look again though nothing has happened; zero is not at all
}

// change is what happens to one ReplicaSet.
type change struct {
	was *appsv1.ReplicaSet // nil if it is to be created
	to  *appsv1.ReplicaSet // nil if it is to be deleted
}

// decide is the whole controller, but for reading and writing:
//
//	a Deployment that                        is
//	is being deleted                         told of, and left alone
//	is paused                                scaled, cleaned up and told of
//	is asked to go back                      recorded as it is, then given an older template, and nothing else
//	was scaled since its sets were           scaled
//	wants Recreate                           emptied, then filled
//	wants RollingUpdate                      moved over within its budget
//
// It is given a Deployment that check has found nothing wrong with.
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

// draft is a decision in the making.
type draft struct {
	observed
	budget budget
	// conditions are those of the Deployment, as far as they are decided upon.
	conditions []appsv1.DeploymentCondition
	sets       []*draftSet // the oldest first
	next       *draftSet   // of those, the one that has the present template; nil if there is none
}

// draftSet is a ReplicaSet as it is, and as it shall be.
type draftSet struct {
	*appsv1.ReplicaSet                    // a copy that may be changed
	was                *appsv1.ReplicaSet // nil if it does not exist yet
	changed, doomed    bool
}

func newDraft(o observed) *draft {
	w := &draft{observed: o, conditions: slices.Clone(o.deployment.Status.Conditions)}
	w.budget, _ = budgetOf(o.deployment) // check has looked at the error
	sorted := slices.SortedFunc(slices.Values(o.sets), older)
	for _, s := range sorted {
		w.sets = append(w.sets, &draftSet{ReplicaSet: s.DeepCopy(), was: s})
	}
	// More than one may have the template, where a hash was made in another way before: the oldest is the one.
	at := slices.IndexFunc(w.sets, func(s *draftSet) bool {
		return sameTemplate(&s.Spec.Template, &o.deployment.Spec.Template)
	})
	if at >= 0 {
		w.next = w.sets[at]
	}
	return w
}

// older orders ReplicaSets by age, and those of one second by name.
func older(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// old are the sets of former templates, the oldest first.
func (w *draft) old() []*draftSet {
	return slices.DeleteFunc(slices.Clone(w.sets), func(s *draftSet) bool { return s == w.next })
}

// active are those of some sets that want Pods.
func active(sets []*draftSet) []*draftSet {
	return slices.DeleteFunc(slices.Clone(sets), func(s *draftSet) bool { return s.size() == 0 })
}

// plain are the objects of some sets, as they shall be.
func plain(sets []*draftSet) []*appsv1.ReplicaSet {
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

// wanted is how many Pods the Deployment wants, most how many it may have in between, and least how many of them it
// must not make unavailable.
func (w *draft) wanted() int32 { return replicas(w.deployment) }
func (w *draft) most() int32   { return w.wanted() + w.budget.surge }
func (w *draft) least() int32  { return w.wanted() - w.budget.unavailable }

func (s *draftSet) size() int32 { return sizeOf(s.ReplicaSet) }

// available is how many of a set's Pods are available for certain, once it has as many as it shall have. A set that was
// scaled and has not said so yet may be deleting Pods that its status still counts.
func (s *draftSet) available() int32 {
	if !s.settled() {
		return 0
	}
	return min(s.Status.AvailableReplicas, s.size())
}

// settled tells whether the status of a set is about its present size.
func (s *draftSet) settled() bool {
	return s.was != nil && s.Status.ObservedGeneration >= s.Generation
}

func available(sets []*draftSet) (sum int32) {
	for _, s := range sets {
		sum += s.available()
	}
	return sum
}

// resize makes a set have another size, and writes into it, at that, how many there may be altogether.
func (w *draft) resize(s *draftSet, size int32) {
	if s.size() == size {
		return
	}
	s.Spec.Replicas = &size
	note(s.ReplicaSet, w.wanted(), w.most())
	s.changed = true
}

// adopt brings the set of the present template, if there is one, up to what its Deployment says, and takes its number.
func (w *draft) adopt() {
	if w.next == nil {
		return
	}
	if annotate(w.next.ReplicaSet, w.deployment, newestRevision(plain(w.old()))+1) {
		w.next.changed = true
	}
	if w.next.Spec.MinReadySeconds != w.deployment.Spec.MinReadySeconds {
		w.next.Spec.MinReadySeconds, w.next.changed = w.deployment.Spec.MinReadySeconds, true
	}
	w.noteFound()
}

// recorded tells whether the present template is a revision, and makes it one if it is not: a rollback would lose it
// otherwise, and the last revision but one would be taken for the last. A template is no revision yet when it was
// changed together with the request, or on a paused Deployment. Its set has no Pods, because the rollback leaves no
// time for any.
func (w *draft) recorded() bool {
	if w.next == nil {
		w.create(0)
		return false
	}
	w.adopt()
	return !w.next.changed
}

// create makes the set of the present template, of the size that it may have.
func (w *draft) create(size int32) {
	w.next = &draftSet{ReplicaSet: newSet(w.deployment)}
	w.next.Spec.Replicas = &size
	annotate(w.next.ReplicaSet, w.deployment, newestRevision(plain(w.sets))+1)
	note(w.next.ReplicaSet, w.wanted(), w.most())
	w.sets = append(w.sets, w.next)
	w.noteCreated()
}

// decided puts together what the draft has come to.
func (w *draft) decided(status appsv1.DeploymentStatus) decision {
	d := decision{status: status, after: w.nextLook(&status)}
	for _, s := range w.newFirst() {
		switch {
		case s.doomed:
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

// newFirst are the sets in the order in which they are written: where the new one cannot be, the old ones stay as they
// are. What one decision adds never counts on what it takes away.
func (w *draft) newFirst() []*draftSet {
	if w.next == nil {
		return w.sets
	}
	return append([]*draftSet{w.next}, w.old()...)
}
