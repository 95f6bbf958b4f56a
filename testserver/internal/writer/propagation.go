package writer

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// propagation returns the policy for dependents, from the new or the old option. Empty means the default of the
// resource.
func propagation(o metav1.DeleteOptions) metav1.DeletionPropagation {
	orphan := o.OrphanDependents //lint:ignore SA1019 old clients still send it
	switch {
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	case orphan == nil:
		return ""
	case *orphan:
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// KeepsNoDependents reports whether a client used the old option to delete dependents. The status code of the answer
// depends on it.
func KeepsNoDependents(o metav1.DeleteOptions) bool {
	return o.PropagationPolicy == nil && propagation(o) == metav1.DeletePropagationBackground
}
