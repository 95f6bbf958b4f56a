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
