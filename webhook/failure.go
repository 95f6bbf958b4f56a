package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/internal/quote"
)

// The limits of texts in an answer, in bytes. The texts of the user's own errors have no limit.
const (
	maxMessage = 1 << 10
	maxName    = 128 // of a name that the peer has sent
)

// failure is a request that gets no review as an answer. The API server then follows failurePolicy.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// refuse returns a failure with a text.
func refuse(code int, format string, args ...any) *failure {
	return &failure{code, fmt.Errorf(format, args...)}
}

// status returns the body of the answer. The API server shows its message to the user.
func (f *failure) status() metav1.Status {
	s := failed(int32(f.code), reasons[f.code], quote.Short(f.Error(), maxMessage))
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return s
}

// wrongReview refuses a body that is not the review of this path.
func wrongReview(got metav1.TypeMeta, version, kind string) *failure {
	return refuse(http.StatusBadRequest, "the body is %s, and this webhook supports only %s %s; correct the versions in the webhook's configuration",
		describe(schema.FromAPIVersionAndKind(got.APIVersion, got.Kind)), version, kind)
}

// unreadable refuses a body that cannot be decoded.
func unreadable(kind string, err error) *failure {
	return refuse(http.StatusBadRequest, "the body is not %s in JSON: %w", kind, err)
}

// describe returns the apiVersion and the kind, without those parts that a peer made long.
func describe(kind schema.GroupVersionKind) string {
	version, name := kind.ToAPIVersionAndKind()
	if version == "" && name == "" {
		return "of an unknown kind"
	}
	return quote.Short(version, maxName) + " " + quote.Short(name, maxName)
}

// reasons has the reason of each code that this package answers with.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
}

func failed(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

// denial returns the Status for an error of a defaulter or a validator. Errors about fields become 422 with a cause for
// each field. A Status of apimachinery's errors stays as it is. Any other error is 403 with its text.
func denial(r *Request, err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		s := api.Status()
		return &s
	}
	if fields := fieldErrors(err); len(fields) > 0 {
		s := apierrors.NewInvalid(schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}, r.Name, fields).Status()
		return &s
	}
	s := failed(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	return &s
}

// fieldErrors returns all errors about fields in a tree of errors, or nil if it has any other error.
func fieldErrors(err error) (fields field.ErrorList) {
	switch e := err.(type) {
	case *field.Error:
		return field.ErrorList{e}
	case interface{ Errors() []error }: // utilerrors.Aggregate, which ErrorList.ToAggregate returns
		return allFieldErrors(e.Errors())
	case interface{ Unwrap() []error }: // errors.Join
		return allFieldErrors(e.Unwrap())
	}
	return nil
}

func allFieldErrors(errs []error) (fields field.ErrorList) {
	for _, err := range errs {
		found := fieldErrors(err)
		if len(found) == 0 {
			return nil
		}
		fields = append(fields, found...)
	}
	return fields
}

// timedOut reports whether an error of the user's code comes from the end of the request's time.
func timedOut(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}
