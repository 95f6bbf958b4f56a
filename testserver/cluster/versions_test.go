package cluster_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

func definitionOf(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), crd))
	return crd
}

func versionOf(name string, storage string, fields string) string {
	return "  - {name: " + name + ", served: true, storage: " + storage + `, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {` + fields + `}}}}}}
`
}

const (
	sails = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sails.leat.example}
spec:
  group: leat.example
  scope: Namespaced
  names: {plural: sails, kind: Sail}
  versions:
`
	oldSail = "area: {type: integer}, cloth: {type: string}"
)

func sail(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leat.example/" + version, "kind": "Sail", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// Warnings about values that were invalid before also come with an error.
func TestWarningsOfAFailedUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		rule := `area: {type: integer, x-kubernetes-validations: [{rule: self < 9, message: the area is large}]}, cloth: {type: string}`
		c := cluster.Start(t, cluster.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{
			definitionOf(t, sails+versionOf("v1", "true", oldSail)),
		}})
		config := c.Config()
		var warned warnings
		config.WarningHandler = &warned
		resource := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{
			Group: "leat.example", Version: "v1", Resource: "sails",
		}).Namespace("default")
		_, err := resource.Create(ctx, sail("v1", "a", map[string]any{"area": int64(20)}), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = c.Server.Update(definitionResource, definitionOf(t, sails+versionOf("v1", "true", rule+`, mast: {type: string, pattern: "^x$"}`)))
		require.NoError(t, err)
		_, err = resource.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"mast":"long"}}`), metav1.PatchOptions{})
		require.ErrorContains(t, err, "spec.mast: Invalid value")
		require.Equal(t, warnings{"spec.area: Invalid value: 20: the area is large"}, warned)
	})
}

type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// A policy merges the lists of a custom resource by the keys of its definition.
func TestPoliciesMergeListsOfCustomResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{definitionOf(t, sails+versionOf("v1", "true",
			`ropes: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
			 items: {type: object, required: [name], properties: {name: {type: string}, length: {type: integer}}}},
			 colours: {type: array, items: {type: string}}`))}})
		client := dynamic.NewForConfigOrDie(c.Config())
		create := func(resource schema.GroupVersionResource, text string) {
			t.Helper()
			u := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
			must.Get(client.Resource(resource).Create(ctx, u, metav1.CreateOptions{}))(t)
		}
		policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
		policy := func(name, expression string) {
			t.Helper()
			create(policies, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: `+name+`}, spec: {
				reinvocationPolicy: Never, matchConstraints: {resourceRules: [
					{apiGroups: [leat.example], apiVersions: [v1], resources: [sails], operations: [CREATE]}]},
				matchConditions: [{name: its, expression: object.metadata.name == '`+name+`'}],
				mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "`+expression+`"}}]}}`)
			bindings := policies.GroupVersion().WithResource("mutatingadmissionpolicybindings")
			create(bindings, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: `+name+`}, spec: {
				policyName: `+name+`}}`)
		}
		policy("keyed", "Object{spec: Object.spec{ropes: [Object.spec.ropes{name: 'spare', length: 9}]}}")
		policy("atomic", "Object{spec: Object.spec{colours: ['red']}}")
		resource := client.Resource(schema.GroupVersionResource{Group: "leat.example", Version: "v1", Resource: "sails"}).Namespace("default")
		main, spare := map[string]any{"name": "main", "length": int64(3)}, map[string]any{"name": "spare", "length": int64(9)}
		made, err := resource.Create(ctx, sail("v1", "keyed", map[string]any{"ropes": []any{main}}), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"ropes": []any{main, spare}}, made.Object["spec"])
		_, err = resource.Create(ctx, sail("v1", "atomic", map[string]any{"colours": []any{"blue"}}), metav1.CreateOptions{})
		require.ErrorContains(t, err, "may not mutate atomic arrays, maps or structs: .spec.colours")
	})
}

// Policies see a custom resource in the version of their rules, by the conversion of the definition.
func TestPoliciesSeeConvertedObjects(t *testing.T) {
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: "Success"}}
		for _, o := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			_ = u.UnmarshalJSON(o.Raw)
			spec := u.Object["spec"].(map[string]any)
			for from, to := range map[string]string{"old": "new", "new": "old"} {
				if text, ok := spec[from].(string); ok {
					u.Object["spec"] = map[string]any{to: text}
				}
			}
			u.SetAPIVersion(review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer webhook.Close()
	crd := definitionOf(t, sails+versionOf("v1", "true", "old: {type: string}")+versionOf("v2", "false", "new: {type: string}"))
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      new(webhook.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
			},
		},
	}
	c := cluster.Start(t, cluster.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	client := dynamic.NewForConfigOrDie(c.Config())
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
	for resource, text := range map[string]string{
		"mutatingadmissionpolicies": `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: p}, spec: {
			reinvocationPolicy: Never, matchConstraints: {resourceRules: [
				{apiGroups: [leat.example], apiVersions: [v1], resources: [sails], operations: [CREATE]}]},
			mutations: [{patchType: JSONPatch, jsonPatch: {
				expression: "[JSONPatch{op: 'replace', path: '/spec/old', value: object.spec.old + '!'}]"}}]}}`,
		"mutatingadmissionpolicybindings": `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding,
			metadata: {name: p}, spec: {policyName: p}}`,
	} {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", "  ")), &u.Object))
		must.Get(client.Resource(policies.GroupVersion().WithResource(resource)).Create(t.Context(), u, metav1.CreateOptions{}))(t)
	}
	v2 := client.Resource(schema.GroupVersionResource{Group: "leat.example", Version: "v2", Resource: "sails"}).Namespace("default")
	made := must.Get(v2.Create(t.Context(), sail("v2", "a", map[string]any{"new": "linen"}), metav1.CreateOptions{}))(t)
	require.Equal(t, map[string]any{"new": "linen!"}, made.Object["spec"])
}
