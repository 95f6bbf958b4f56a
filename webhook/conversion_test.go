package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/webhook"
)

// oldMill is version v1alpha1 of a mill: the number of stones is a text, and there is no grain.
type oldMill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Stones string `json:"stones,omitempty"`
	} `json:"spec"`
}

// grain is the annotation that keeps the grain of a mill while it has the version v1alpha1.
const grain = "mills.example/grain"

func toV1(old *oldMill) (*mill, error) {
	m := &mill{TypeMeta: old.TypeMeta, ObjectMeta: old.ObjectMeta}
	m.Spec.Grain = m.Annotations[grain]
	delete(m.Annotations, grain)
	var err error
	if old.Spec.Stones != "" {
		m.Spec.Stones, err = strconv.Atoi(old.Spec.Stones)
	}
	return m, err
}

func toV1alpha1(m *mill) (*oldMill, error) {
	old := &oldMill{ObjectMeta: m.ObjectMeta}
	if m.Spec.Grain != "" {
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, grain, m.Spec.Grain)
	}
	if m.Spec.Stones != 0 {
		old.Spec.Stones = strconv.Itoa(m.Spec.Stones)
	}
	return old, nil
}

// converter converts mills of three versions. Version v2 has the same fields as v1.
func converter() webhook.Conversion[*mill] {
	same := func(m *mill) (*mill, error) { return m, nil }
	return webhook.Conversion[*mill]{Hub: mills, Spokes: []webhook.Spoke[*mill]{
		webhook.NewSpoke("v1alpha1", toV1, toV1alpha1), webhook.NewSpoke("v2", same, same),
	}}
}

// conversion returns a ConversionReview.
func conversion(version string, objects ...string) string {
	raw := []json.RawMessage{}
	for _, o := range objects {
		raw = append(raw, json.RawMessage(o))
	}
	text, _ := json.Marshal(raw)
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u2","desiredAPIVersion":"mills.example/%s","objects":%s}}`, version, text)
}

// millAt returns a mill of a version in JSON. Its metadata has fields that the types do not declare.
func millAt(version, spec string) string {
	return `{"apiVersion":"mills.example/` + version + `","kind":"Mill","metadata":{"name":"north","namespace":"valley","uid":"m1","resourceVersion":"7",
		"future":{"a":1},"annotations":{"a":"b"}},"spec":{` + spec + `}}`
}

type conversionAnswer struct {
	UID              string
	ConvertedObjects []json.RawMessage
	Result           metav1.Status
}

// convert posts a review and returns the answer.
func (r rig) convert(t *testing.T, body string) conversionAnswer {
	t.Helper()
	w := r.post("/convert", body)
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	var answer struct {
		metav1.TypeMeta
		Response conversionAnswer
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}, answer.TypeMeta)
	require.Equal(t, "u2", answer.Response.UID)
	return answer.Response
}

func newConverter(t *testing.T) rig {
	t.Helper()
	r := newRig(t, webhook.Options{})
	r.Handle("/convert", converter())
	return r
}

func TestConversionRoundTrips(t *testing.T) {
	r := newConverter(t)
	original := millAt("v1", `"grain":"rye","stones":3`)
	for _, version := range []string{"v1alpha1", "v2"} {
		there := r.convert(t, conversion(version, original, original))
		require.Equal(t, metav1.StatusSuccess, there.Result.Status)
		require.Len(t, there.ConvertedObjects, 2)
		require.Contains(t, string(there.ConvertedObjects[1]), `"apiVersion":"mills.example/`+version+`"`)
		back := r.convert(t, conversion("v1", string(there.ConvertedObjects[0])))
		require.JSONEq(t, original, string(back.ConvertedObjects[0]))
	}
	there := r.convert(t, conversion("v1alpha1", original))
	require.JSONEq(t, `{"apiVersion":"mills.example/v1alpha1","kind":"Mill","metadata":{"name":"north","namespace":"valley","uid":"m1",
		"resourceVersion":"7","future":{"a":1},"annotations":{"a":"b","mills.example/grain":"rye"}},"spec":{"stones":"3"}}`, string(there.ConvertedObjects[0]))
	across := r.convert(t, conversion("v2", string(there.ConvertedObjects[0])))
	require.Contains(t, string(across.ConvertedObjects[0]), `"grain":"rye"`, "between two spokes")
}

func TestAnObjectOfTheDesiredVersionStays(t *testing.T) {
	r := newConverter(t)
	original := `{"apiVersion":"mills.example/v1","kind":"Mill","metadata":{"name":"a"},"unknown":1.50}`
	answer := r.convert(t, conversion("v1", original, millAt("v1alpha1", `"stones":"4"`)))
	require.Len(t, answer.ConvertedObjects, 2)
	require.Equal(t, original, string(answer.ConvertedObjects[0]))
	require.Contains(t, string(answer.ConvertedObjects[1]), `"stones":4`)
	require.Equal(t, metav1.StatusSuccess, r.convert(t, conversion("v1")).Result.Status, "no objects")
}

func TestConversionsThatFail(t *testing.T) {
	valid := millAt("v1alpha1", "")
	for name, c := range map[string]struct{ body, text string }{
		"an unknown desired version": {conversion("v9", valid), `the webhook does not know the version "mills.example/v9"; it converts v1, v1alpha1, v2 of mills.example/Mill`},
		"an unknown version":         {conversion("v1", valid, millAt("v9", "")), `convert valley/north from mills.example/v9 Mill to v1: the webhook does not know the version "mills.example/v9"`},
		"another group":              {conversion("v1", `{"apiVersion":"apps/v1","kind":"Mill","metadata":{"name":"north"}}`), `convert north from apps/v1 Mill to v1: the webhook does not know`},
		"another kind":               {conversion("v1", `{"apiVersion":"mills.example/v1","kind":"Bakery"}`), "the webhook converts only the kind Mill"},
		"no object":                  {conversion("v1", valid, "7"), "object 1 of the review: "},
		"an error of the function":   {conversion("v1", millAt("v1alpha1", `"stones":"many"`)), `convert valley/north from mills.example/v1alpha1 Mill to v1: strconv.Atoi: parsing "many": invalid syntax`},
		"another type of a field":    {conversion("v1", millAt("v1alpha1", `"stones":7`)), "spec.stones"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newConverter(t)
			answer := r.convert(t, c.body)
			require.Empty(t, answer.ConvertedObjects, "a part of the list helps nobody")
			require.Equal(t, metav1.StatusFailure, answer.Result.Status)
			require.Contains(t, answer.Result.Message, c.text)
		})
	}
}

func TestConversionsCannotChangeTheMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(m *mill)
		text string // of the error; empty if the change is undone
	}{
		"finalizers": {func(m *mill) { m.Finalizers = []string{"a"} }, ""},
		"version":    {func(m *mill) { m.ResourceVersion = "" }, ""},
		"type":       {func(m *mill) { m.APIVersion, m.Kind = "v1", "Pod" }, ""},
		"name":       {func(m *mill) { m.Name = "" }, `the converted object has the name "", and the original has "north"; the conversion must copy the metadata`},
		"namespace":  {func(m *mill) { m.Namespace = "hill" }, "the namespace"},
		"uid":        {func(m *mill) { m.UID = "" }, "the uid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, webhook.Options{})
			edit := func(m *mill) (*mill, error) { c.edit(m); return m, nil }
			r.Handle("/convert", webhook.Conversion[*mill]{Hub: mills, Spokes: []webhook.Spoke[*mill]{webhook.NewSpoke("v2", edit, edit)}})
			answer := r.convert(t, conversion("v2", millAt("v1", "")))
			require.Contains(t, answer.Result.Message, c.text)
			if c.text == "" {
				require.JSONEq(t, millAt("v2", ""), string(answer.ConvertedObjects[0]))
			}
		})
	}
}

func TestLabelsAndAnnotationsCanBeRemoved(t *testing.T) {
	r := newRig(t, webhook.Options{})
	bare := func(m *mill) (*mill, error) {
		m.Annotations, m.Labels = nil, map[string]string{"a": "b"}
		return m, nil
	}
	r.Handle("/convert", webhook.Conversion[*mill]{Hub: mills, Spokes: []webhook.Spoke[*mill]{webhook.NewSpoke("v2", bare, bare)}})
	answer := r.convert(t, conversion("v2", millAt("v1", "")))
	require.NotContains(t, string(answer.ConvertedObjects[0]), "annotations")
	require.Contains(t, string(answer.ConvertedObjects[0]), `"labels":{"a":"b"}`)
}

// TestObjectsWithoutMetadataAreConverted converts objects that no API server sends, to a version with an annotation.
func TestObjectsWithoutMetadataAreConverted(t *testing.T) {
	r := newConverter(t)
	for _, metadata := range []string{``, `"metadata":null,`} {
		answer := r.convert(t, conversion("v1alpha1", `{"apiVersion":"mills.example/v1","kind":"Mill",`+metadata+`"spec":{"grain":"rye"}}`))
		require.Equal(t, metav1.StatusSuccess, answer.Result.Status, answer.Result.Message)
		require.JSONEq(t, `{"apiVersion":"mills.example/v1alpha1","kind":"Mill","metadata":{"annotations":{"mills.example/grain":"rye"}},"spec":{}}`,
			string(answer.ConvertedObjects[0]))
	}
}

func TestConversionRequestsAreChecked(t *testing.T) {
	r := newConverter(t)
	for body, text := range map[string]string{
		`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview"}`: "the body is apiextensions.k8s.io/v1beta1 ConversionReview, and this webhook supports only apiextensions.k8s.io/v1 ConversionReview",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`:      "the ConversionReview has no request with a uid",
		"{": "the body is not ConversionReview in JSON: ",
	} {
		w := r.post("/convert", body)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, failureOf(t, w).Message, text)
	}
}

func TestConversionsHaveTheirOwnLimits(t *testing.T) {
	r := newRig(t, webhook.Options{Limits: webhook.Limits{MaxAdmissionBytes: 10, MaxConversionBytes: 1000}})
	r.Handle("/convert", converter())
	require.Equal(t, http.StatusOK, r.post("/convert", conversion("v1", millAt("v1", ""))).Code)
	objects := make([]string, 10)
	for i := range objects {
		objects[i] = millAt("v1", "")
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, r.post("/convert", conversion("v1", objects...)).Code)
}

func TestAPanicOfAConversion(t *testing.T) {
	r := newRig(t, webhook.Options{})
	panics := func(*mill) (*mill, error) { panic("out of water") }
	r.Handle("/convert", webhook.Conversion[*mill]{Hub: mills, Spokes: []webhook.Spoke[*mill]{webhook.NewSpoke("v2", panics, panics)}})
	require.Equal(t, http.StatusInternalServerError, r.post("/convert", conversion("v2", millAt("v1", ""))).Code)
	require.Equal(t, 1, r.count.conversionPanics)
	require.Zero(t, r.count.panics)
}

func TestALongConversionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, webhook.Options{})
		slow := func(m *mill) (*mill, error) { <-time.After(10 * time.Second); return m, nil }
		r.Handle("/convert", webhook.Conversion[*mill]{Hub: mills, Spokes: []webhook.Spoke[*mill]{webhook.NewSpoke("v2", slow, slow)}})
		m := millAt("v1", "")
		w := r.post("/convert", conversion("v2", m, m, m, m, m))
		require.Equal(t, http.StatusGatewayTimeout, w.Code)
		require.Equal(t, []time.Duration{30 * time.Second}, r.count.took, "the time is over during the third object")
	})
}

func TestMisuseOfConversions(t *testing.T) {
	same := func(m *mill) (*mill, error) { return m, nil }
	spoke := webhook.NewSpoke("v2", same, same)
	for _, c := range []webhook.Conversion[*mill]{
		{},
		{Hub: mills, Spokes: []webhook.Spoke[*mill]{spoke, spoke}},
		{Hub: mills, Spokes: []webhook.Spoke[*mill]{webhook.NewSpoke("v1", same, same)}},
		{Hub: mills, Spokes: []webhook.Spoke[*mill]{{}}},
	} {
		r := newRig(t, webhook.Options{})
		require.Panics(t, func() { r.Handle("/convert", c) })
	}
	require.Panics(t, func() { webhook.NewSpoke[*mill, *mill]("v2", nil, nil) })
}
