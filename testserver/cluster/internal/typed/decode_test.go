package typed_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
)

// decodes decodes JSON into a new value of the type of sample, and reports whether Decode did. A value must be the one
// that the decoder of Kubernetes returns without complaints.
func decodes(t *testing.T, body []byte, sample any) bool {
	got := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
	if !typed.Decode(body, got) {
		return false
	}
	want := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
	strict, err := kjson.UnmarshalStrict(body, want)
	require.NoError(t, err, "%s", body)
	require.Empty(t, strict, "%s", body)
	require.Equal(t, want, got, "%s", body)
	return true
}

// TestDecodeLikeKubernetes decodes values of all types, and damaged ones.
func TestDecodeLikeKubernetes(t *testing.T) {
	random := rand.New(rand.NewSource(4))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, legacyscheme.Codecs)
	tried, decoded, damaged := 0, 0, 0
	kinds := slices.SortedFunc(maps.Keys(legacyscheme.Scheme.AllKnownTypes()), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String()) // a seed gives the same values only in the same order
	})
	for _, kind := range kinds {
		value, err := legacyscheme.Scheme.New(kind)
		require.NoError(t, err)
		if _, err := meta.Accessor(value); err != nil || kind.Version == runtime.APIVersionInternal {
			continue
		}
		for range 4 {
			fill.Fill(value)
			body, err := json.Marshal(value)
			require.NoError(t, err)
			tried++
			if decodes(t, body, value) {
				decoded++
			}
			for range 20 {
				if len(body) > 20_000 {
					break
				}
				if decodes(t, damage(random, body), value) {
					damaged++
				}
			}
		}
	}
	require.Greater(t, decoded, tried*8/10)
	require.NotZero(t, damaged)
}

// damage changes, removes, repeats or moves a few bytes.
func damage(random *rand.Rand, body []byte) []byte {
	at, n := random.Intn(len(body)), 1+random.Intn(12)
	end := min(at+n, len(body))
	out := append([]byte(nil), body[:at]...)
	switch random.Intn(4) {
	case 0:
		const signs = "{}[],:\"\\ 0129-.enulltrufalsx\x00\xff\xc3"
		out = append(append(out, signs[random.Intn(len(signs))]), body[at+1:]...)
	case 1:
		out = append(out, body[end:]...)
	case 2:
		out = append(append(out, body[at:end]...), body[at:]...)
	case 3:
		out = append(append(out, " \n"...), body[at:]...)
	}
	return out
}

func TestDecodeCommonForms(t *testing.T) {
	configMap, deployment, pod := &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Pod{}
	for _, c := range []struct {
		body   string
		sample any
		ok     bool
	}{
		{`{"kind":"ConfigMap","metadata":{"name":"a","creationTimestamp":null},"data":{"a":"1\n\u00e9"}}`, configMap, true},
		{" {\n\t\"data\" : null , \"binaryData\":{\"a\":\"AQID\"} }\r\n", configMap, true},
		{`{"data":{}}`, configMap, true},
		{`{}`, configMap, true},
		{`{"data":{"a":"1","a":"2"}}`, configMap, false},
		{`{"data":{"a":1}}`, configMap, false},
		{`{"data":{},"data":{}}`, configMap, false},
		{`{"Data":{}}`, configMap, false},
		{`{"other":{}}`, configMap, false},
		{`{"binaryData":{"a":"no base64"}}`, configMap, false},
		{`{"data":{}`, configMap, false},
		{`{"data":{},}`, configMap, false},
		{`{}{}`, configMap, false},
		{`[]`, configMap, false},
		{``, configMap, false},
		{`null`, configMap, false},
		{"{\"data\":{\"a\":\"\xff\"}}", configMap, false},
		{"{\"data\":{\"a\":\"\n\"}}", configMap, false},
		{`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":5}},
			"livenessProbe":{"httpGet":{"port":"http"}},"readinessProbe":{"httpGet":{"port":8080}}}]}}}}`, deployment, true},
		{`{"spec":{"replicas":3.0}}`, deployment, false},
		{`{"spec":{"replicas":1e1}}`, deployment, false},
		{`{"spec":{"replicas":03}}`, deployment, false},
		{`{"spec":{"replicas":2147483648}}`, deployment, false},
		{`{"spec":{"replicas":"3"}}`, deployment, false},
		{`{"spec":{"replicas":null,"paused":false}}`, deployment, true},
		{`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"k:{\"a\":\"b\"}":{}}}}]}}`, deployment, true},
		{`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{]}}}]}}`, deployment, false},
		{`{"metadata":{"managedFields":[{"fieldsV1":"\q"}]}}`, &appsv1.Deployment{}, false},
		{`{"metadata":{"creationTimestamp":"yesterday"}}`, deployment, false},
		{`{"spec":{"containers":[],"volumes":null,"tolerations":[{"tolerationSeconds":-5}]}}`, pod, true},
	} {
		require.Equal(t, c.ok, decodes(t, []byte(c.body), c.sample), c.body)
	}
	deep := `{"spec":` + strings.Repeat(`{"validation":`, 300)
	require.False(t, typed.Decode([]byte(deep), &corev1.Pod{}))
	require.False(t, typed.Decode([]byte("{}"), corev1.Pod{}), "not a pointer")
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}`))
	f.Add([]byte(`{"spec":{"overhead":{"a":1,"a":2},"securityContext":{"runAsUser":-1},"volumes":[],"hostUsers":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) { decodes(t, body, &corev1.Pod{}) })
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-1","labels":{"app":"web"}},"spec":{
		"containers":[{"name":"main","image":"registry.example/main:1","ports":[{"name":"http","containerPort":8080}],
		"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]}}`)
	b.Run("typed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.True(b, typed.Decode(body, &corev1.Pod{}))
		}
	})
	b.Run("kubernetes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := kjson.UnmarshalStrict(body, &corev1.Pod{})
			require.NoError(b, err)
		}
	})
}
