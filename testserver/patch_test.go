package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/testserver"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// TestErrorsOfPatches has the words of kube-apiserver.
func TestErrorsOfPatches(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		for _, row := range []struct {
			query, kind, body string
			code              int
			message           string
		}{
			{"", jsonPatch, `[{"op":7}]`, 400, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"},
			{"", jsonPatch, `[{"op":"replace","path":"/metadata","value":"b"}]`, 422, ""},
			{"", jsonPatch, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"ConfigMap"},`, 10_000) + "{}]", 413, ""},
			{"", strategicPatch, `{}`, 415, "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
			{
				"?fieldValidation=Strict", mergePatch, `{"data":{"k":"1","k":"2"}}`, 422,
				` "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"2\"},\"kind\":\"ConfigMap\",`,
			},
			{"?fieldValidation=Strict", jsonPatch, `[{"op":"test","path":"/data/k","value":"v","more":1}]`, 422, `: strict decoding error: json patch unknown field "[0].more"`},
		} {
			status := b.refused(row.code, http.MethodPatch, mapsPath+"/a"+row.query, row.body, "Content-Type", row.kind)
			require.Contains(b, status.Message, row.message)
		}
		answer := b.do(http.MethodPatch, mapsPath+"/a", `{"data":{"k":"1","k":"2"}}`, "Content-Type", mergePatch)
		require.Equal(b, 200, answer.code)
		require.Equal(b, `299 - "duplicate field \"data.k\""`, answer.header.Get("Warning"))
		answer = b.do(http.MethodPatch, mapsPath+"/a?fieldValidation=Ignore", `{"data":{"k":"1","k":"3"}}`, "Content-Type", mergePatch)
		require.Empty(b, answer.header.Get("Warning"))
	})
}

// managers formats metadata.managedFields for people: manager, operation and fields.
func managers(u *unstructured.Unstructured) []string {
	var out []string
	for _, m := range u.GetManagedFields() {
		sub := ""
		if m.Subresource != "" {
			sub = "/" + m.Subresource
		}
		out = append(out, fmt.Sprintf("%s %s%s %s", m.Manager, m.Operation, sub, m.FieldsV1.GetRawString()))
	}
	sort.Strings(out)
	return out
}

func TestManagedFields(t *testing.T) {
	inBubble(t, testserver.Options{ManagedFields: true}, func(b *bench) {
		u := b.ok(http.MethodPost, deploymentsPath+"?fieldManager=one", doc{
			"metadata": meta("d", "labels", doc{"a": "b"}), "spec": doc{"replicas": 1, "containers": []any{doc{"name": "c", "image": "i"}}},
		})
		require.Equal(b, []string{
			`one Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:containers":{},"f:replicas":{}}}`,
		}, managers(u))
		require.Equal(b, "apps/v1", u.GetManagedFields()[0].APIVersion)
		require.Equal(b, metav1.Now().UTC().Truncate(time.Second), u.GetManagedFields()[0].Time.UTC())

		// The last writer of a field owns it.
		b.ok(http.MethodPatch, deploymentsPath+"/d?fieldManager=two", `{"spec":{"replicas":2}}`, "Content-Type", mergePatch)
		u = b.ok(http.MethodPatch, deploymentsPath+"/d/status", `{"status":{"ready":1}}`, "Content-Type", mergePatch, "User-Agent", "three/v1 (x)")
		require.Equal(b, []string{
			`one Update {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:containers":{}}}`,
			`three Update/status {"f:status":{"f:ready":{}}}`,
			`two Update {"f:spec":{"f:replicas":{}}}`,
		}, managers(u))

		// An update without managedFields keeps the entries. One empty entry deletes them.
		u.SetManagedFields(nil)
		u = b.ok(http.MethodPut, deploymentsPath+"/d", u)
		require.Len(b, u.GetManagedFields(), 3)
		u = b.ok(http.MethodPatch, deploymentsPath+"/d", `{"metadata":{"managedFields":[{}]}}`, "Content-Type", mergePatch)
		require.Empty(b, u.GetManagedFields())
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		entry := doc{"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": doc{"f:data": doc{}}}
		u := b.ok(http.MethodPost, mapsPath, doc{"metadata": meta("a", "managedFields", []any{entry})})
		require.Equal(b, []string{`me Update {"f:data":{}}`}, managers(u), "the entries of the client are kept")
	})
}

func TestApply(t *testing.T) {
	inBubble(t, testserver.Options{ManagedFields: true}, func(b *bench) {
		apply := func(manager, spec string, query ...string) *unstructured.Unstructured {
			b.Helper()
			q := queryOf(append(query, "fieldManager="+manager)...)
			return b.ok(http.MethodPatch, deploymentsPath+"/d"+q, "apiVersion: apps/v1\nkind: Deployment\n"+spec, "Content-Type", applyPatch)
		}
		a := b.do(http.MethodPatch, deploymentsPath+"/d?fieldManager=one",
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"b"}},"spec":{"replicas":1,"items":{"p":{"v":1}}}}`,
			"Content-Type", applyPatch)
		require.Equal(b, http.StatusCreated, a.code, "%s", a.body)
		u := &unstructured.Unstructured{Object: a.json(t)}
		require.Equal(b, "101", u.GetResourceVersion())
		require.Len(b, u.GetManagedFields(), 1)
		require.Equal(b, metav1.ManagedFieldsOperationApply, u.GetManagedFields()[0].Operation)

		// The same configuration again writes nothing, also later.
		<-time.After(time.Minute)
		const first = "metadata: {labels: {a: b}}\nspec: {replicas: 1, items: {p: {v: 1}}}\n"
		require.Equal(b, "101", apply("one", first).GetResourceVersion())

		// Another manager adds an item and applies an equal value.
		u = apply("two", "spec: {replicas: 1, items: {q: {v: 2}}}\n")
		require.Equal(b, doc{"p": doc{"v": int64(1)}, "q": doc{"v": int64(2)}}, u.Object["spec"].(doc)["items"])

		// A different value is a conflict, unless force is set.
		status := b.refused(409, http.MethodPatch, deploymentsPath+"/d?fieldManager=three",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5,"items":{"p":{"v":9}}}}`, "Content-Type", applyPatch)
		require.Equal(b, metav1.StatusReasonConflict, status.Reason)
		var causes []string
		for _, c := range status.Details.Causes {
			require.Equal(b, metav1.CauseTypeFieldManagerConflict, c.Type)
			causes = append(causes, c.Message+" "+c.Field)
		}
		require.Equal(b, []string{
			`conflict with "one" .spec.replicas`, `conflict with "one" .spec.items.p.v`, `conflict with "two" .spec.replicas`,
		}, causes)
		u = apply("three", "spec: {replicas: 5}\n", "force=true")
		require.EqualValues(b, 5, u.Object["spec"].(doc)["replicas"])

		// A field that a manager omits is removed, unless another manager owns it.
		u = apply("one", "metadata: {labels: {c: d}}\nspec: {replicas: 5}\n")
		require.Equal(b, map[string]string{"c": "d"}, u.GetLabels())
		require.Equal(b, doc{"q": doc{"v": int64(2)}}, u.Object["spec"].(doc)["items"])
		u = apply("two", "spec: {}\n")
		require.Equal(b, doc{"replicas": int64(5)}, u.Object["spec"])
		require.Equal(b, []string{
			`one Apply {"f:metadata":{"f:labels":{".":{},"f:c":{}}},"f:spec":{".":{},"f:replicas":{}}}`,
			`three Apply {"f:spec":{".":{},"f:replicas":{}}}`,
			`two Apply {"f:spec":{}}`,
		}, managersOf(u, "Apply"))

		// An update takes fields from the managers that applied them.
		b.ok(http.MethodPatch, deploymentsPath+"/d?fieldManager=editor", `{"spec":{"replicas":6}}`, "Content-Type", mergePatch)
		b.refused(409, http.MethodPatch, deploymentsPath+"/d?fieldManager=one",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`, "Content-Type", applyPatch)
		// The status has its own entry.
		u = b.ok(http.MethodPatch, deploymentsPath+"/d/status?fieldManager=one",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":9},"status":{"ready":3}}`, "Content-Type", applyPatch)
		require.Equal(b, doc{"ready": int64(3)}, u.Object["status"])
		require.EqualValues(b, 6, u.Object["spec"].(doc)["replicas"])
	})
}

func managersOf(u *unstructured.Unstructured, operation string) (out []string) {
	for _, m := range managers(u) {
		if strings.Contains(m, " "+operation+" ") {
			out = append(out, m)
		}
	}
	return out
}

func TestApplyCustomResources(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(mills)
		const first = `{"apiVersion":"leat.example/v1","kind":"Mill","metadata":{"name":"m"},"spec":{"wheels":1}}`
		require.Equal(b, 201, b.do(http.MethodPatch, millsPath+"/m?fieldManager=x", first, "Content-Type", applyPatch).code)
		u := b.ok(http.MethodPatch, millsPath+"/m?fieldManager=x", `{"apiVersion":"leat.example/v1","kind":"Mill","spec":{"sails":4}}`,
			"Content-Type", applyPatch)
		require.Equal(b, doc{"sails": int64(4)}, u.Object["spec"])
		require.EqualValues(b, 2, u.GetGeneration())
		require.Equal(b, []string{`x Apply {"f:spec":{".":{},"f:sails":{}}}`}, managers(u))
	})
}

// TestFirstApply applies to an object without managedFields.
func TestFirstApply(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		const config = `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"w"}}`
		status := b.refused(409, http.MethodPatch, mapsPath+"/a?fieldManager=x", config, "Content-Type", applyPatch)
		require.Contains(b, status.Message, `conflict with "before-first-apply"`)
		u := b.ok(http.MethodPatch, mapsPath+"/a?fieldManager=x&force=true", config, "Content-Type", applyPatch)
		require.Equal(b, []string{`x Apply {"f:data":{".":{},"f:k":{}}}`}, managersOf(u, "Apply"))
	})
}

func TestApplyRefusals(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const whole = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		for _, row := range []struct {
			query, body string
			code        int
		}{
			{"", whole, 422},
			{"?fieldManager=x", `{"metadata":{"name":"a"}}`, 400},
			{"?fieldManager=x", `{`, 400},
			{"?fieldManager=x", `[]`, 400},
			{"?fieldManager=x", `{"apiVersion":"v1","kind":"Pod"}`, 400},
			{"?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap"}`, 400},
			{"?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, 400},
			{"?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":7}}`, 400},
			{"?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"manager":"m"}]}}`, 400},
		} {
			b.refused(row.code, http.MethodPatch, mapsPath+"/a"+row.query, row.body, "Content-Type", applyPatch)
		}
		b.refused(404, http.MethodPatch, podsPath+"/a/status?fieldManager=x", `{"apiVersion":"v1","kind":"Pod"}`, "Content-Type", applyPatch)
		u := b.ok(http.MethodPatch, mapsPath+"/a?fieldManager=x&dryRun=All", whole, "Content-Type", applyPatch)
		require.Equal(b, "a", u.GetName())
		require.Equal(b, "100", b.ResourceVersion())
		b.ok(http.MethodPatch, mapsPath+"/a?fieldManager=x", whole, "Content-Type", applyPatch)
		b.refused(409, http.MethodPatch, mapsPath+"/a?fieldManager=x",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"7"},"data":{"a":"b"}}`, "Content-Type", applyPatch)
	})
}

// TestApplyOfEmptyObjects applies an empty object in place of one with fields. It stays an empty object, and the same
// configuration again changes nothing.
func TestApplyOfEmptyObjects(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		apply := func(spec string) *unstructured.Unstructured {
			b.Helper()
			return b.ok(http.MethodPatch, deploymentsPath+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":`+spec+`}`, "Content-Type", applyPatch)
		}
		b.do(http.MethodPatch, deploymentsPath+"/d?fieldManager=one", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"sel":{"a":"b"}}}`, "Content-Type", applyPatch)
		for _, spec := range []string{`{"sel":{}}`, `{}`} {
			u := apply(spec)
			var want doc
			require.NoError(b, json.Unmarshal([]byte(spec), &want))
			require.Equal(b, want, u.Object["spec"])
			require.Equal(b, u.GetResourceVersion(), apply(spec).GetResourceVersion())
		}
	})
}

// TestDefaultsHaveAnOwner looks at fields that the decoder of kube-apiserver adds: their manager is the one who wrote
// the object. The fields that a write ignores have none.
func TestDefaultsHaveAnOwner(t *testing.T) {
	inBubble(t, testserver.Options{ManagedFields: true}, func(b *bench) {
		owned := func(u *unstructured.Unstructured) string {
			var all []string
			for _, entry := range u.GetManagedFields() {
				all = append(all, entry.FieldsV1.GetRawString())
			}
			return strings.Join(all, " ")
		}
		a := b.do(http.MethodPost, "/api/v1/namespaces/default/secrets?fieldManager=one", `{"metadata":{"name":"s"}}`)
		require.Contains(b, owned(&unstructured.Unstructured{Object: a.json(t)}), `"f:type":{}`)
		a = b.do(http.MethodPost, "/api/v1/namespaces?fieldManager=one", `{"metadata":{"name":"n"}}`)
		require.Contains(b, owned(&unstructured.Unstructured{Object: a.json(t)}), `"f:kubernetes.io/metadata.name":{}`)
		u := b.ok(http.MethodPut, "/api/v1/namespaces/n/finalize?fieldManager=two",
			`{"metadata":{"name":"n"},"spec":{"finalizers":["kubernetes","a/b"]},"status":{"phase":"Active"}}`)
		require.Contains(b, owned(u), `"f:finalizers"`)
		require.NotContains(b, owned(u), "f:status")
	})
}

// TestWrongManagedFieldsAreIgnored sends entries that no manager can have. Later applies must work.
func TestWrongManagedFieldsAreIgnored(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		config := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":1}}`
		b.do(http.MethodPatch, deploymentsPath+"/d?fieldManager=one", config, "Content-Type", applyPatch)
		for _, entries := range []string{`[{"operation":"Nope","apiVersion":"apps/v1"}]`, `["x",5]`} {
			u := b.ok(http.MethodPatch, deploymentsPath+"/d", `{"metadata":{"managedFields":`+entries+`}}`, "Content-Type", mergePatch)
			require.Equal(b, "one", u.GetManagedFields()[0].Manager)
			b.ok(http.MethodPatch, deploymentsPath+"/d?fieldManager=one", config, "Content-Type", applyPatch)
		}
	})
}
