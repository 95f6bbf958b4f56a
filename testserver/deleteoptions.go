package testserver

import (
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queryDeleteOptions reads the options of a deletion without a body.
func queryDeleteOptions(o *metav1.DeleteOptions, q url.Values) error {
	if text := q.Get("gracePeriodSeconds"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		o.GracePeriodSeconds = &n
	}
	if text := q.Get("propagationPolicy"); text != "" {
		policy := metav1.DeletionPropagation(text)
		o.PropagationPolicy = &policy
	}
	if q.Has("orphanDependents") {
		orphan := boolParam(q, "orphanDependents")
		o.OrphanDependents = &orphan //lint:ignore SA1019 old clients still send it
	}
	return nil
}

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

// keepsNoDependents reports whether a client used the old option to delete dependents. The status code of the answer
// depends on it.
func keepsNoDependents(o metav1.DeleteOptions) bool {
	return o.PropagationPolicy == nil && propagation(o) == metav1.DeletePropagationBackground
}
