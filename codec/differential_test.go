package codec_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/codec"
)

// kinds returns a new pointer to each kind of many groups of k8s.io/api, with its protobuf.
func kinds(t testing.TB) []reflect.Type {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme,
		eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, resourcev1.AddToScheme, storagev1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	var found []reflect.Type
	for gvk, typ := range scheme.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal && gvk.GroupKind() != (schema.GroupKind{Group: gvk.Group, Kind: "WatchEvent"}) {
			found = append(found, typ)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

// sameAsReference decodes b into new values of typ with sigs.k8s.io/json and with leat, and compares them.
func sameAsReference(t testing.TB, b []byte, typ reflect.Type) {
	t.Helper()
	want := reflect.New(typ).Interface()
	wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts(b, want)
	got, gotErr := codec.DecodeInto(typ)(b)
	if wantErr != nil {
		require.Error(t, gotErr, "%s: sigs.k8s.io/json says %v\n%s", typ, wantErr, b)
		return
	}
	require.NoError(t, gotErr, "%s\n%s", typ, b)
	require.True(t, reflect.DeepEqual(want, got), "%s\n%s\nwant %+v\ngot  %+v", typ, b, want, got)
}

// filled returns the JSON of a typ with random content.
func filled(t testing.TB, typ reflect.Type, seed uint64, sparse float64) []byte {
	t.Helper()
	obj := reflect.New(typ)
	newFiller(seed, sparse).fill(obj.Elem(), 0)
	b, err := json.Marshal(obj.Interface())
	require.NoError(t, err, typ)
	return b
}

func TestDecodesLikeReference(t *testing.T) {
	for _, typ := range kinds(t) {
		for seed := range uint64(4) {
			sameAsReference(t, filled(t, typ, seed, float64(seed%4)/4), typ)
		}
	}
}

// mutate changes a decoded document at random places so that decoders may differ.
func mutate(r *rand.Rand, v any) any {
	if r.IntN(12) == 0 {
		return []any{nil, "text", "12", 1.5, -3, true, []any{}, map[string]any{}, []any{nil}, map[string]any{"x": nil}, "2024-01-02T03:04:05Z", "", 1e300}[r.IntN(13)]
	}
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = mutate(r, v[name])
		}
	case []any:
		for i := range v {
			v[i] = mutate(r, v[i])
		}
	}
	return v
}

func TestRefusesLikeReference(t *testing.T) {
	for _, typ := range kinds(t) {
		for seed := range uint64(4) {
			var document any
			require.NoError(t, json.Unmarshal(filled(t, typ, seed, 0.3), &document))
			sameAsReference(t, mustJSON(mutate(rand.New(rand.NewPCG(seed, 1)), document)), typ)
		}
	}
}

// repeatedly writes a document in which members are repeated, with other values and in other cases of letters.
func repeatedly(r *rand.Rand, b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for name, value := range v {
			if r.IntN(4) == 0 {
				b = append(append(b, mustJSON(name)...), ':')
				b = append(repeatedly(r, b, mutate(r, clone(value))), ',')
			}
			if r.IntN(8) == 0 {
				b = append(append(b, mustJSON(strings.ToUpper(name))...), ":[{}],"...)
			}
			b = append(append(b, mustJSON(name)...), ':')
			b = append(repeatedly(r, b, value), ',')
		}
		return append(bytes.TrimSuffix(b, []byte{','}), '}')
	case []any:
		b = append(b, '[')
		for _, value := range v {
			b = append(repeatedly(r, b, value), ',')
		}
		return append(bytes.TrimSuffix(b, []byte{','}), ']')
	default:
		return append(b, mustJSON(v)...)
	}
}

func clone(v any) any {
	var c any
	if err := json.Unmarshal(mustJSON(v), &c); err != nil {
		panic(err)
	}
	return c
}

func TestRepeatsLikeReference(t *testing.T) {
	for _, typ := range kinds(t) {
		for seed := range uint64(4) {
			var document any
			require.NoError(t, json.Unmarshal(filled(t, typ, seed, 0.3), &document))
			sameAsReference(t, repeatedly(rand.New(rand.NewPCG(seed, 3)), nil, document), typ)
		}
	}
}

// newMessage returns a new pointer to typ if it is a message of protobuf.
func newMessage(typ reflect.Type) (reflect.Value, bool) {
	v := reflect.New(typ)
	_, ok := v.Interface().(interface{ Unmarshal([]byte) error })
	return v, ok
}
