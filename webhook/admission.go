package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/quote"
)

// Defaulter sets defaults. It corresponds to CustomDefaulter of controller-runtime.
type Defaulter[T any] interface {
	// Default changes a new object, or the new version of an object. The request may be repeated, so defaults must not
	// depend on how often Default is called. An error refuses the request; see Validator. RequestFrom returns the
	// request.
	Default(ctx context.Context, object T) error
}

// DefaultFunc is a function that implements Defaulter.
type DefaultFunc[T any] func(ctx context.Context, object T) error

// Default calls f.
func (f DefaultFunc[T]) Default(ctx context.Context, object T) error { return f(ctx, object) }

// Validator refuses requests. The user sees the warnings even if the request is allowed. An error refuses the request:
//
//	*field.Error, field.ErrorList.ToAggregate()  422 Invalid, with a cause for each field
//	errors of k8s.io/apimachinery/pkg/api/errors their own Status
//	any other error                              403 Forbidden, with its text
//
// It corresponds to CustomValidator of controller-runtime.
type Validator[T any] interface {
	// ValidateCreate checks a new object.
	ValidateCreate(ctx context.Context, object T) (warnings []string, err error)
	// ValidateUpdate checks a change. It is also called for subresources, such as the status.
	ValidateUpdate(ctx context.Context, old, object T) (warnings []string, err error)
	// ValidateDelete checks whether an object may be deleted.
	ValidateDelete(ctx context.Context, object T) (warnings []string, err error)
}

// ValidateFunc is a Validator that calls one function for new objects and changes, and allows deletions. RequestFrom
// and OldObject tell them apart.
type ValidateFunc[T any] func(ctx context.Context, object T) (warnings []string, err error)

// ValidateCreate calls f.
func (f ValidateFunc[T]) ValidateCreate(ctx context.Context, object T) ([]string, error) {
	return f(ctx, object)
}

// ValidateUpdate calls f with the new object.
func (f ValidateFunc[T]) ValidateUpdate(ctx context.Context, _, object T) ([]string, error) {
	return f(ctx, object)
}

// ValidateDelete allows the deletion.
func (f ValidateFunc[T]) ValidateDelete(context.Context, T) ([]string, error) { return nil, nil }

// Admission is a webhook for AdmissionReviews of objects of type T, a pointer to a struct. T may declare only the
// fields that matter: a patch changes no other field.
//
// At least one of Default and Validate is set. With both, Validate gets the object with its defaults. A path with
// Default belongs into a MutatingWebhookConfiguration, because the API server accepts a patch only there.
type Admission[T any] struct {
	// Resource is the resource whose objects T can decode. A review of another kind or version gets 400. The zero value
	// accepts every kind.
	Resource api.Resource
	Default  Defaulter[T]
	Validate Validator[T]
}

// hook compiles the webhook.
func (a Admission[T]) hook() hook {
	if a.Default == nil && a.Validate == nil {
		panic("webhook: an Admission needs Default, Validate, or both")
	}
	reviews := codec.New[*admissionReview](codec.Options{MaxObjectBytes: maxCodecBytes})
	objects := codec.New[T](codec.Options{MaxObjectBytes: maxCodecBytes})
	return hook{review: func(ctx context.Context, body []byte) (any, error) {
		review, err := decode(ctx, reviews, body)
		if err != nil {
			return nil, unreadable(admissionKind, err)
		}
		r := review.Request
		switch {
		case review.APIVersion != admissionVersion || review.Kind != admissionKind:
			return nil, wrongReview(review.TypeMeta, admissionVersion, admissionKind)
		case r == nil || r.UID == "":
			return nil, refuse(http.StatusBadRequest, "the AdmissionReview has no request with a uid")
		}
		if err := a.accepts(&r.Request); err != nil {
			return nil, err
		}
		response, err := a.answer(ctx, objects, r)
		if err != nil {
			return nil, err
		}
		response.UID = r.UID
		return &admissionReview{TypeMeta: review.TypeMeta, Response: response}, nil
	}}
}

// accepts refuses a request that the rules of the configuration should not have sent here.
func (a Admission[T]) accepts(r *Request) error {
	want, got := a.Resource.GroupVersionKind(), schema.GroupVersionKind(r.Kind)
	if a.Resource != (api.Resource{}) && got != want {
		return refuse(http.StatusBadRequest, "this webhook is for %s, and the review is about %s; correct the rules of the webhook's configuration",
			describe(want), describe(got))
	}
	switch r.Operation {
	case Create, Update, Delete:
		return nil
	}
	return refuse(http.StatusBadRequest, "this webhook does not support the operation %q; correct the rules of the webhook's configuration",
		quote.Short(string(r.Operation), maxName))
}

// answer calls the user's code for one request.
func (a Admission[T]) answer(ctx context.Context, objects *codec.Codec[T], r *admissionRequest) (*admissionResponse, error) {
	object, old, status := a.objects(ctx, objects, r)
	if status != nil {
		return &admissionResponse{Status: status}, nil
	}
	r.Request.Old = nil
	if r.Operation != Create {
		r.Request.Old = old
	}
	ctx = WithRequest(ctx, r.Request)
	response := &admissionResponse{Allowed: true}
	var err error
	if a.Default != nil && r.Operation != Delete {
		response.Patch, err = a.patch(ctx, r, object)
		if response.Patch != nil {
			response.PatchType = jsonPatchType
		}
	}
	if err == nil && a.Validate != nil {
		response.Warnings, err = a.validate(ctx, r.Operation, old, object)
	}
	var broken *failure
	switch {
	case err == nil:
		return response, nil
	case errors.As(err, &broken):
		return nil, broken
	case timedOut(ctx, err):
		return nil, &failure{http.StatusGatewayTimeout, err}
	}
	return &admissionResponse{Status: denial(&r.Request, err), Warnings: response.Warnings}, nil
}

// objects decodes the objects that the operation has. Schemas are checked after mutating webhooks, so an object that
// does not fit T is an error of the user, and the status is the answer to it.
func (a Admission[T]) objects(ctx context.Context, objects *codec.Codec[T], r *admissionRequest) (object, old T, status *metav1.Status) {
	for _, o := range []struct {
		raw  json.RawMessage
		into *T
		has  bool
	}{
		{r.Object, &object, r.Operation != Delete},
		{r.OldObject, &old, r.Operation != Create},
	} {
		if !o.has {
			continue
		}
		var err error
		if *o.into, err = decode(ctx, objects, o.raw); err != nil {
			s := failed(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the webhook cannot decode the object: "+quote.Short(err.Error(), maxMessage))
			return object, old, &s
		}
	}
	return object, old, nil
}

// patch calls Default and returns its changes.
func (a Admission[T]) patch(ctx context.Context, r *admissionRequest, object T) ([]byte, error) {
	before, err := codec.Marshal(object, codec.MediaTypeJSON, a.Resource)
	if err != nil {
		return nil, &failure{http.StatusInternalServerError, err}
	}
	if err := a.Default.Default(ctx, object); err != nil {
		return nil, err
	}
	after, err := codec.Marshal(object, codec.MediaTypeJSON, a.Resource)
	if err != nil {
		return nil, &failure{http.StatusInternalServerError, err}
	}
	patch, err := patchOf(r.Object, before, after)
	if err != nil {
		return nil, &failure{http.StatusInternalServerError, err}
	}
	return patch, nil
}

func (a Admission[T]) validate(ctx context.Context, operation Operation, old, object T) ([]string, error) {
	switch operation {
	case Create:
		return a.Validate.ValidateCreate(ctx, object)
	case Update:
		return a.Validate.ValidateUpdate(ctx, old, object)
	}
	return a.Validate.ValidateDelete(ctx, old)
}
