package wire

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/store"
)

// ParseListOptions reads the parameters of a list or a watch. An invalid number is a 400.
func ParseListOptions(q url.Values) (o metav1.ListOptions, err error) {
	q = withoutEmpty(q, "limit", "timeoutSeconds")
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &o, nil); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

// withoutEmpty returns a query without some parameters if they are empty.
func withoutEmpty(q url.Values, names ...string) url.Values {
	for _, name := range names {
		if q.Has(name) && q.Get(name) == "" {
			q = maps.Clone(q)
			q.Del(name)
		}
	}
	return q
}

// CheckListOptions rejects invalid combinations. Each is a cause of one 422.
func CheckListOptions(o metav1.ListOptions) error {
	var errs field.ErrorList
	forbid := func(name, why string) { errs = append(errs, field.Forbidden(field.NewPath(name), why)) }
	match := o.ResourceVersionMatch
	if match != "" {
		if o.ResourceVersion == "" {
			forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
		}
		if o.Continue != "" {
			forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
		}
		if match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(field.NewPath("resourceVersionMatch"), match,
				[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan, ""}))
		}
		if match == metav1.ResourceVersionMatchExact && o.ResourceVersion == "0" {
			forbid("resourceVersionMatch", `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)
		}
	}
	if o.SendInitialEvents != nil {
		forbid("sendInitialEvents", "sendInitialEvents is forbidden for list")
	}
	return invalidOptions(errs)
}

// CheckWatchOptions rejects invalid combinations for a watch. streaming says whether the server supports WatchLists.
func CheckWatchOptions(o metav1.ListOptions, streaming bool) error {
	var errs field.ErrorList
	forbid := func(name, why string) { errs = append(errs, field.Forbidden(field.NewPath(name), why)) }
	match := o.ResourceVersionMatch
	if o.SendInitialEvents != nil {
		if match != metav1.ResourceVersionMatchNotOlderThan {
			forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
		}
		if !streaming {
			forbid("sendInitialEvents", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		}
	}
	if match != "" {
		if o.SendInitialEvents == nil {
			forbid("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
		if match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(field.NewPath("resourceVersionMatch"), match,
				[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchNotOlderThan}))
		}
		if o.Continue != "" {
			forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
		}
	}
	return invalidOptions(errs)
}

func invalidOptions(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

// ParseVersion parses a resource version; empty means zero. An invalid version is a 400 for a list and a 500 otherwise,
// as in kube-apiserver.
func ParseVersion(text string, listing bool) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil {
		return n, nil
	}
	problem := field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	if listing {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", problem))
	}
	return 0, store.StorageError(problem)
}

// DefaultWatchOptions makes a watch without a start begin with a list, as it always has. A server without WatchLists
// does the same, but sends no bookmark after the list.
func DefaultWatchOptions(o metav1.ListOptions, streaming bool) metav1.ListOptions {
	if streaming && o.SendInitialEvents == nil && o.ResourceVersionMatch == "" &&
		(o.ResourceVersion == "" || o.ResourceVersion == "0") {
		send := true
		o.SendInitialEvents, o.ResourceVersionMatch = &send, metav1.ResourceVersionMatchNotOlderThan
	}
	return o
}

// Expired returns the 410 for a version to which the history does not reach back.
func Expired(message string) *apierrors.StatusError { return apierrors.NewResourceExpired(message) }

// TooLarge returns the 504 for a version that the server has not reached in time.
func TooLarge(want, have uint64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", want, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

// BoolParam reads a flag as the API machinery does: true if it is present and not "0" or "false".
func BoolParam(q url.Values, name string) bool {
	values, ok := q[name]
	if !ok || len(values) == 0 {
		return false
	}
	return values[0] != "0" && !strings.EqualFold(values[0], "false")
}
