package collect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bond is the state of an owner that a reference names.
type bond int

const (
	solid   bond = iota // the owner exists
	waiting             // the owner waits for the deletion of its dependents
	absent              // the owner does not exist
	invalid             // the reference names an owner that the object cannot have
)

// step is what the collector does with an object.
type step int

const (
	keep    step = iota
	release      // remove the references in verdict.drop
	unblock      // make the references not blocking, and delete the object in the foreground
	remove       // delete the object, with verdict.policy
)

// verdict is the decision about an object.
type verdict struct {
	step   step
	drop   []types.UID
	policy metav1.DeletionPropagation
}

// decide decides about an object that has owners and is not being deleted. The first row that applies decides:
//
//	a reference is invalid             keep the object
//	an owner exists                    keep the object, and release it from the other owners
//	an owner waits for the object      delete the object; in the foreground if it has dependents itself
//	no owner exists                    delete the object; its own finalizers decide about its dependents
//
// dependents are the objects that the object owns. If one of them is itself waiting for dependents, the owners may form
// a cycle; the object must then not block its owners.
func decide(o *item, bonds []bond, dependents []*item) verdict {
	refs := o.Metadata.OwnerReferences
	switch {
	case slices.Contains(bonds, invalid):
		return verdict{}
	case slices.Contains(bonds, solid):
		var drop []types.UID
		for i, r := range refs {
			if bonds[i] != solid {
				drop = append(drop, r.UID)
			}
		}
		if drop == nil {
			return verdict{}
		}
		return verdict{step: release, drop: drop}
	case slices.Contains(bonds, waiting) && len(dependents) > 0:
		if slices.ContainsFunc(dependents, (*item).foreground) {
			return verdict{step: unblock, policy: metav1.DeletePropagationForeground}
		}
		return verdict{step: remove, policy: metav1.DeletePropagationForeground}
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case slices.Contains(o.Metadata.Finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(o.Metadata.Finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return verdict{step: remove, policy: policy}
}
