package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/webhook"
)

// twoStones sets the number of stones.
func twoStones(_ context.Context, m *mill) error {
	if m.Spec.Stones == 0 {
		m.Spec.Stones = 2
	}
	return nil
}

func TestDefaultsArePatches(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/mutate", webhook.Admission[*mill]{Resource: mills, Default: webhook.DefaultFunc[*mill](twoStones)})

	for _, operation := range []string{`"operation":"CREATE"`, `"operation":"UPDATE","oldObject":` + object("")} {
		answer := r.admit(t, "/mutate", operation+`,"object":`+object(""))
		require.True(t, answer.Allowed)
		require.Equal(t, "JSONPatch", answer.PatchType)
		require.JSONEq(t, `[{"op":"add","path":"/spec/stones","value":2}]`, string(answer.Patch), "fields that the type lacks stay")
	}
	answer := r.admit(t, "/mutate", `"operation":"CREATE","object":`+object(`,"stones":3`))
	require.Equal(t, response{UID: "u1", Allowed: true}, answer, "nothing to change")
	answer = r.admit(t, "/mutate", `"operation":"DELETE","oldObject":`+object(""))
	require.Equal(t, response{UID: "u1", Allowed: true}, answer, "a deletion has no defaults")
	require.Empty(t, r.refusals())
}

func TestValidatorsGetTheOperationsObjects(t *testing.T) {
	var calls []string
	r := newRig(t, webhook.Options{})
	r.Handle("/validate", webhook.Admission[*mill]{Resource: mills, Validate: validate{
		create: func(_ context.Context, m *mill) ([]string, error) {
			calls = append(calls, "create "+m.Spec.Grain)
			return []string{"rye is out of fashion"}, nil
		},
		update: func(_ context.Context, old, m *mill) ([]string, error) {
			calls = append(calls, "update "+old.Spec.Grain+" "+m.Spec.Grain)
			return nil, nil
		},
		remove: func(_ context.Context, m *mill) ([]string, error) {
			calls = append(calls, "delete "+m.Spec.Grain)
			return []string{"the bread will miss it"}, errors.New("it still turns")
		},
	}})
	rye, oats := object(`,"grain":"rye"`), object(`,"grain":"oats"`)
	require.Equal(t, response{UID: "u1", Allowed: true, Warnings: []string{"rye is out of fashion"}},
		r.admit(t, "/validate", `"operation":"CREATE","object":`+rye+`,"oldObject":null`))
	require.True(t, r.admit(t, "/validate", `"operation":"UPDATE","oldObject":`+rye+`,"object":`+oats).Allowed)
	answer := r.admit(t, "/validate", `"operation":"DELETE","oldObject":`+oats+`,"object":null`)
	require.Equal(t, []string{"create rye", "update rye oats", "delete oats"}, calls)
	require.False(t, answer.Allowed)
	require.Equal(t, []string{"the bread will miss it"}, answer.Warnings, "warnings also go with a refusal")
	require.Equal(t, "it still turns", answer.Status.Message)
}

func TestDefaultsComeBeforeValidation(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/both", webhook.Admission[*mill]{
		Default: webhook.DefaultFunc[*mill](twoStones),
		Validate: webhook.ValidateFunc[*mill](func(_ context.Context, m *mill) ([]string, error) {
			if m.Spec.Stones != 2 {
				return nil, errors.New("no stones")
			}
			return nil, nil
		}),
	})
	answer := r.admit(t, "/both", `"operation":"CREATE","object":`+object(""))
	require.True(t, answer.Allowed)
	require.NotEmpty(t, answer.Patch)
	require.False(t, r.admit(t, "/both", `"operation":"UPDATE","oldObject":`+object("")+`,"object":`+object(`,"stones":1`)).Allowed)
	require.True(t, r.admit(t, "/both", `"operation":"DELETE","oldObject":`+object(`,"stones":1`)).Allowed, "a ValidateFunc allows deletions")
}

func TestErrorsKeepTheirStatus(t *testing.T) {
	spec := field.NewPath("spec")
	two := field.ErrorList{field.Required(spec.Child("grain"), "of the mill"), field.Invalid(spec.Child("stones"), -1, "must not be negative")}
	wrapped := apierrors.NewConflict(schema.GroupResource{Resource: "rivers"}, "leat", errors.New("it is dry"))
	for name, c := range map[string]struct {
		err    error
		code   int32
		reason metav1.StatusReason
		causes []string
		text   string
	}{
		"plain":     {errors.New("not today"), 403, metav1.StatusReasonForbidden, nil, "not today"},
		"one field": {two[0], 422, metav1.StatusReasonInvalid, []string{"spec.grain"}, `Mill.mills.example "north" is invalid: spec.grain: Required value: of the mill`},
		"aggregate": {two.ToAggregate(), 422, metav1.StatusReasonInvalid, []string{"spec.grain", "spec.stones"}, ""},
		"joined":    {errors.Join(two[0], errors.Join(two[1])), 422, metav1.StatusReasonInvalid, []string{"spec.grain", "spec.stones"}, ""},
		"mixed":     {errors.Join(two[0], errors.New("not today")), 403, metav1.StatusReasonForbidden, nil, "spec.grain: Required value: of the mill\nnot today"},
		"status":    {wrapped, 409, metav1.StatusReasonConflict, nil, `Operation cannot be fulfilled on rivers "leat": it is dry`},
		"internal":  {apierrors.NewInternalError(errors.New("broken")), 500, metav1.StatusReasonInternalError, []string{""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for path, a := range map[string]webhook.Admission[*mill]{
				"/validate": {Validate: webhook.ValidateFunc[*mill](func(context.Context, *mill) ([]string, error) { return nil, c.err })},
				"/mutate":   {Default: webhook.DefaultFunc[*mill](func(context.Context, *mill) error { return c.err })},
			} {
				r := newRig(t, webhook.Options{})
				r.Handle(path, a)
				answer := r.admit(t, path, `"operation":"CREATE","object":`+object(""))
				require.False(t, answer.Allowed)
				require.Empty(t, answer.Patch)
				require.Equal(t, c.code, answer.Status.Code)
				require.Equal(t, c.reason, answer.Status.Reason)
				require.Contains(t, answer.Status.Message, c.text)
				var causes []string
				if d := answer.Status.Details; d != nil {
					for _, cause := range d.Causes {
						causes = append(causes, cause.Field)
					}
				}
				require.Equal(t, c.causes, causes)
				require.Empty(t, r.refusals(), "a refusal is an answer")
			}
		})
	}
}

func TestRequestsSayWhoAsksForWhat(t *testing.T) {
	var got webhook.Request
	var old *mill
	had := true
	r := newRig(t, webhook.Options{})
	r.Handle("/mutate", webhook.Admission[*mill]{Resource: mills, Default: webhook.DefaultFunc[*mill](func(ctx context.Context, _ *mill) error {
		got = webhook.RequestFrom(ctx)
		old, had = webhook.OldObject[*mill](ctx)
		return nil
	})})
	r.admit(t, "/mutate", `"operation":"UPDATE","dryRun":true,"subResource":"status",
		"resource":{"group":"mills.example","version":"v1","resource":"mills"},
		"requestKind":{"group":"mills.example","version":"v1alpha1","kind":"Mill"},
		"userInfo":{"username":"miller","uid":"u7","groups":["guild"],"extra":{"scopes":["a","b"]}},
		"options":{"kind":"UpdateOptions"},"object":`+object("")+`,"oldObject":`+object(`,"grain":"rye"`))
	require.Equal(t, webhook.UserInfo{Username: "miller", UID: "u7", Groups: []string{"guild"}, Extra: map[string][]string{"scopes": {"a", "b"}}}, got.UserInfo)
	require.Equal(t, webhook.Update, got.Operation)
	require.True(t, got.DryRun)
	require.Equal(t, "status", got.SubResource)
	require.Equal(t, "mills", got.Resource.Resource)
	require.Equal(t, "v1alpha1", got.RequestKind.Version)
	require.Equal(t, "north", got.Name)
	require.Equal(t, "valley", got.Namespace)
	require.JSONEq(t, `{"kind":"UpdateOptions"}`, string(got.Options))
	require.True(t, had)
	require.Equal(t, "rye", old.Spec.Grain)

	r.admit(t, "/mutate", `"operation":"CREATE","object":`+object(""))
	require.False(t, had, "a new object has no former version")
	require.Panics(t, func() { webhook.RequestFrom(t.Context()) })
}

func TestObjectsThatDoNotFitAreErrorsOfTheUser(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/mutate", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](twoStones)})
	for _, request := range []string{
		`"operation":"CREATE","object":` + object(`,"stones":"secret"`),
		`"operation":"CREATE"`,
		`"operation":"UPDATE","object":` + object(""),
		`"operation":"DELETE","oldObject":7`,
	} {
		answer := r.admit(t, "/mutate", request)
		require.False(t, answer.Allowed, request)
		require.EqualValues(t, http.StatusBadRequest, answer.Status.Code)
		require.Equal(t, metav1.StatusReasonBadRequest, answer.Status.Reason)
		require.Contains(t, answer.Status.Message, "the webhook cannot decode the object: ")
		require.NotContains(t, answer.Status.Message, "secret")
	}
	require.Contains(t, r.admit(t, "/mutate", `"operation":"CREATE","object":`+object(`,"stones":"secret"`)).Status.Message, "spec.stones")
}

func TestAnyKind(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/any", webhook.Admission[*metav1.PartialObjectMetadata]{
		Default: webhook.DefaultFunc[*metav1.PartialObjectMetadata](func(_ context.Context, m *metav1.PartialObjectMetadata) error {
			metav1.SetMetaDataLabel(&m.ObjectMeta, "seen", "yes")
			return nil
		}),
	})
	answer := r.admit(t, "/any", `"operation":"CREATE","object":`+object(""))
	require.JSONEq(t, `[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`, string(answer.Patch))
	generated := `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"north-","labels":{"a":"b"}}}`
	answer = r.admit(t, "/any", `"operation":"CREATE","object":`+generated)
	require.JSONEq(t, `[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]`, string(answer.Patch), "an object without a name")
}

func TestMisuse(t *testing.T) {
	r := newRig(t, webhook.Options{})
	require.Panics(t, func() { r.Handle("/empty", webhook.Admission[*mill]{Resource: api.Resource{}}) })
	valid := webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](twoStones)}
	require.Panics(t, func() { r.Handle("mutate", valid) })
	r.Handle("/mutate", valid)
	require.Panics(t, func() { r.Handle("/mutate", valid) })
	require.Equal(t, []string{"/mutate"}, r.count.added)
}
