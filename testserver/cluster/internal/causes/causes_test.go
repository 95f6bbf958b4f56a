package causes_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/cluster/internal/causes"
)

func TestOrder(t *testing.T) {
	path := field.NewPath("spec")
	of := func(errs ...*field.Error) error {
		return causes.Order(apierrors.NewInvalid(schema.GroupKind{Group: "leat.example", Kind: "Mill"}, "a", errs))
	}
	key := func(k string) *field.Error { return field.Required(path.Child("parts").Key(k), "") }
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"keys", of(key("z"), key("a"), key("m")), "[spec.parts[a]: Required value, spec.parts[m]: Required value, spec.parts[z]: Required value]"},
		{
			"others stay", of(field.Required(path.Child("z"), ""), key("z"), field.Required(path.Child("y"), ""), key("a"), field.Required(path.Child("b"), "")),
			"[spec.z: Required value, spec.parts[a]: Required value, spec.y: Required value, spec.parts[z]: Required value, spec.b: Required value]",
		},
		{"elements of lists", of(field.Required(path.Index(10), ""), field.Required(path.Index(9), "")), "[spec[10]: Required value, spec[9]: Required value]"},
		{
			"one element keeps its order", of(key("z"), field.Required(path.Child("parts").Key("a").Child("y"), ""), field.Required(path.Child("parts").Key("a").Child("b"), "")),
			"[spec.parts[a].y: Required value, spec.parts[a].b: Required value, spec.parts[z]: Required value]",
		},
		{
			"maps in maps", of(field.Required(path.Key("a").Child("x").Key("z"), ""), field.Required(path.Key("a").Child("x").Key("b"), "")),
			"[spec[a].x[b]: Required value, spec[a].x[z]: Required value]",
		},
		{
			"labels", of(field.Invalid(path.Child("labels"), "z", "no"), field.Invalid(path.Child("labels"), "a", "no")),
			`[spec.labels: Invalid value: "a": no, spec.labels: Invalid value: "z": no]`,
		},
		{
			"texts of lists", of(field.Invalid(path.Child("finalizers"), "z", "no"), field.Invalid(path.Child("finalizers"), "a", "no")),
			`[spec.finalizers: Invalid value: "z": no, spec.finalizers: Invalid value: "a": no]`,
		},
		{
			"a selector that is missing and must not change", of(field.Required(path.Child("selector"), ""),
				field.Invalid(path.Child("labels"), "a", "no"), field.Invalid(path.Child("selector"), "b", "field is immutable")),
			`[spec.selector: Required value, spec.labels: Invalid value: "a": no, spec.selector: Invalid value: "b": field is immutable]`,
		},
		{"the same twice", of(key("z"), key("z")), "spec.parts[z]: Required value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.EqualError(t, tc.err, `Mill.leat.example "a" is invalid: `+tc.want)
		})
	}
	require.NoError(t, causes.Order(nil))
	other := errors.New("x")
	require.Equal(t, other, causes.Order(other))
}
