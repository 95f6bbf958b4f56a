package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
		orphan := BoolParam(q, "orphanDependents")
		o.OrphanDependents = &orphan //lint:ignore SA1019 old clients still send it
	}
	return nil
}

// ParseDeleteOptions reads the options from the body, or from the query if there is no body.
func ParseDeleteOptions(r *http.Request) (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	body, err := ReadBody(r)
	if err != nil {
		return o, err
	}
	q := r.URL.Query()
	if len(body) > 0 {
		if kind := ContentType(r); kind != "application/json" {
			return o, Unsupported("application/json")
		}
		if err := json.Unmarshal(body, &o); err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		if o.Kind != "" && o.Kind != "DeleteOptions" {
			return o, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
		}
	} else if err := queryDeleteOptions(&o, q); err != nil {
		return o, err
	}
	if len(o.DryRun) == 0 {
		o.DryRun = q["dryRun"]
	}
	if errs := metav1validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return o, invalidDelete(errs)
	}
	return o, nil
}

// invalidDelete returns the 422 for invalid options of a deletion.
func invalidDelete(errs field.ErrorList) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
}
