package admission_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/object"
)

const configurations = "/apis/admissionregistration.k8s.io/v1/"

// register creates a configuration with one webhook for writes of ConfigMaps. more are members of the webhook.
func (w *world) register(kind, name, more string) {
	w.Helper()
	w.make(configurations+kind+"webhookconfigurations", fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{
		"name":"%s.leat.example","admissionReviewVersions":["v1"],"sideEffects":"None",
		"clientConfig":{"url":"https://hooks.example/%s","caBundle":%s},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE","DELETE"]}]%s}]}`,
		name, name, name, w.ca, more))
}

func allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func deny(message string) hook {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message}, Warnings: []string{"careful"}}
	}
}

// patch returns a hook with a JSON patch.
func patch(operations string) hook {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		kind := admissionv1.PatchTypeJSONPatch
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: &kind}
	}
}

func configMap(name string) string { return `{"metadata":{"name":"` + name + `"},"data":{"a":"1"}}` }

func TestValidatingWebhook(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "check", "")
		var seen *admissionv1.AdmissionRequest
		w.hooks["/check"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			seen = r
			return allow(r)
		}
		w.make(configMaps, configMap("a"))
		require.Equal(t, []string{"/check CREATE configmaps.v1 a"}, w.called(), "a webhook counts at once")
		require.Equal(t, "ann", seen.UserInfo.Username)
		require.Equal(t, "default", seen.Namespace)
		require.JSONEq(t, `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`, string(seen.Options.Raw))
		tree := must.Get(object.Decode(seen.Object.Raw))(t)
		require.NotEmpty(t, at(t, tree, "metadata", "uid"), "validation sees the object as it will be stored")
		_, _, _ = w.send("PATCH", configMaps+"/a", `{"data":{"a":"2"}}`)
		require.NotEmpty(t, seen.OldObject.Raw)
		w.hooks["/check"] = deny("no")
		code, answer, warnings := w.send("DELETE", configMaps+"/a", "")
		require.Equal(t, 400, code, "the webhook sets no other code")
		require.Equal(t, `admission webhook "check.leat.example" denied the request: no`, answer["message"])
		require.Equal(t, []string{`299 - "careful"`}, warnings)
		require.Equal(t, []string{"/check UPDATE configmaps.v1 a", "/check DELETE configmaps.v1 a"}, w.called())
		code, _, _ = w.send("GET", configMaps+"/a", "")
		require.Equal(t, 200, code)
		code, _, _ = w.send("DELETE", configurations+"validatingwebhookconfigurations/check", "")
		require.Equal(t, 200, code)
		code, _, _ = w.send("DELETE", configMaps+"/a", "")
		require.Equal(t, 200, code)
		require.Empty(t, w.called())
	})
}

func TestMutatingWebhook(t *testing.T) {
	inWorld(t, only("MutatingAdmissionWebhook"), func(w *world) {
		w.register("mutating", "change", "")
		w.hooks["/change"] = patch(`[{"op":"add","path":"/data/b","value":"2"},{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`)
		a := w.make(configMaps, configMap("a"))
		require.Equal(t, object.Tree{"a": "1", "b": "2"}, a["data"])
		require.Equal(t, "y", at(t, a, "metadata", "labels", "x"))
		w.hooks["/change"] = patch(`[{"op":"add","path":"/data/b","value":5}]`)
		require.Contains(t, w.refused(500, configMaps, configMap("b")), "cannot unmarshal number into Go struct field ConfigMap.data of type string")
		w.hooks["/change"] = patch(`[{"op":"remove","path":"/data/none"}]`)
		require.Contains(t, w.refused(500, configMaps, configMap("b")), "Unable to remove nonexistent key: none")
	})
}

// TestWebhooksSeeTheKindOfASubresource: a write to a Scale, a binding and an eviction are objects of their own kinds.
func TestWebhooksSeeTheKindOfASubresource(t *testing.T) {
	inWorld(t, only("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"), func(w *world) {
		for _, kind := range []string{"mutating", "validating"} {
			w.make(configurations+kind+"webhookconfigurations", fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{
				"name":"%s.leat.example","admissionReviewVersions":["v1"],"sideEffects":"None",
				"clientConfig":{"url":"https://hooks.example/%s","caBundle":%s},
				"rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*/scale","pods/binding","pods/eviction","bindings"],
				"operations":["*"]}]}]}`, kind, kind, kind, w.ca))
		}
		var seen []string
		look := func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			o := must.Get(object.Decode(r.Object.Raw))(t)
			text := fmt.Sprintf("%s %s %s/%s %s", r.Operation, r.Resource.Resource, r.SubResource, r.Name, r.Kind.String())
			for _, tree := range []object.Tree{o, object.MapAt(o, "spec"), object.MapAt(o, "target")} {
				if n, ok := object.IntAt(tree, "replicas"); ok {
					text += fmt.Sprint(" ", n)
				}
				if node := object.StringAt(tree, "name"); node != "" {
					text += " " + node
				}
			}
			if len(r.OldObject.Raw) > 0 {
				old := must.Get(object.Decode(r.OldObject.Raw))(t)
				text += fmt.Sprint(" was ", object.MapAt(old, "spec")["replicas"])
			}
			seen = append(seen, text)
			return allow(r)
		}
		w.hooks["/mutating"], w.hooks["/validating"] = look, look
		const sets = "/apis/apps/v1/namespaces/default/replicasets"
		w.make(sets, `{"metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"x":"y"}},
			"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
		w.make(pods, pod("a", ""))
		w.make(pods, pod("b", ""))
		code, _, _ := w.send("PATCH", sets+"/a/scale", `{"spec":{"replicas":5}}`)
		require.Equal(t, 200, code)
		w.make(pods+"/a/binding", `{"metadata":{"name":"a"},"target":{"name":"n1"}}`)
		w.make("/api/v1/namespaces/default/bindings", `{"metadata":{"name":"b"},"target":{"name":"n2"}}`)
		w.make(pods+"/a/eviction", `{"metadata":{"name":"a"}}`)
		const scale, binding = "UPDATE replicasets scale/a autoscaling/v1, Kind=Scale 5 was 2", "/v1, Kind=Binding"
		require.Equal(t, []string{
			scale, scale, "CREATE pods binding/a " + binding + " n1", "CREATE pods binding/a " + binding + " n1",
			"CREATE bindings /b " + binding + " n2", "CREATE bindings /b " + binding + " n2",
			"CREATE pods eviction/a policy/v1, Kind=Eviction", "CREATE pods eviction/a policy/v1, Kind=Eviction",
		}, seen)

		// What a mutating webhook changes in a Scale is written, and a refused eviction leaves the pod alone.
		w.hooks["/mutating"] = patch(`[{"op":"replace","path":"/spec/replicas","value":3}]`)
		code, answer, _ := w.send("PATCH", sets+"/a/scale", `{"spec":{"replicas":9}}`)
		require.Equal(t, 200, code)
		require.EqualValues(t, 3, at(t, answer, "spec", "replicas"))
		w.hooks["/mutating"], w.hooks["/validating"] = allow, deny("not now")
		require.Contains(t, w.refused(400, pods+"/b/eviction", `{"metadata":{"name":"b"}}`), "not now")
		code, _, _ = w.send("GET", pods+"/b", "")
		require.Equal(t, 200, code)
	})
}

func TestMutatedPodsGetDefaults(t *testing.T) {
	inWorld(t, only("MutatingAdmissionWebhook"), func(w *world) {
		w.make(configurations+"mutatingwebhookconfigurations", `{"metadata":{"name":"inject"},"webhooks":[{
			"name":"inject.leat.example","admissionReviewVersions":["v1"],"sideEffects":"None",
			"clientConfig":{"service":{"namespace":"default","name":"hooks","path":"/inject"},"caBundle":`+w.ca+`},
			"rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["pods"],"operations":["*"]}]}]}`)
		w.hooks["/inject"] = patch(`[{"op":"add","path":"/spec/containers/-","value":{"name":"side","image":"s"}}]`)
		a := w.make(pods, pod("a", ""))
		require.Equal(t, "side", at(t, a, "spec", "containers", 1, "name"))
		require.Equal(t, "/dev/termination-log", at(t, a, "spec", "containers", 1, "terminationMessagePath"))
	})
}

func TestMatching(t *testing.T) {
	for name, c := range map[string]struct {
		more string
		want bool
	}{
		"namespace":       {`,"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"default"}}`, true},
		"other namespace": {`,"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}`, false},
		"object":          {`,"objectSelector":{"matchLabels":{"app":"web"}}`, true},
		"other object":    {`,"objectSelector":{"matchLabels":{"app":"db"}}`, false},
		"condition":       {`,"matchConditions":[{"name":"c","expression":"object.data.a == '1' && request.userInfo.username == 'ann'"}]`, true},
		"other condition": {`,"matchConditions":[{"name":"c","expression":"authorizer.group('').resource('x').check('grind').allowed()"}]`, false},
		"scope":           {`,"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"],"scope":"Cluster"}]`, false},
		"operation":       {`,"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"operations":["UPDATE"]}]`, false},
		"subresource":     {`,"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps/status"],"operations":["*"]}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
				w.register("validating", "check", c.more)
				w.hooks["/check"] = allow
				w.make(configMaps, `{"metadata":{"name":"a","labels":{"app":"web"}},"data":{"a":"1"}}`)
				require.Equal(t, c.want, len(w.called()) == 1)
			})
		})
	}
}

func TestEquivalentVersions(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "check", `,"rules":[{"apiGroups":["autoscaling"],"apiVersions":["v1"],"resources":["horizontalpodautoscalers"],"operations":["*"]}]`)
		var seen object.Tree
		w.hooks["/check"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			require.Equal(t, "v2", r.RequestResource.Version)
			require.NoError(t, json.Unmarshal(r.Object.Raw, &seen))
			return allow(r)
		}
		w.make("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
			`{"metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},
			"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}]}}`)
		require.Equal(t, []string{"/check CREATE horizontalpodautoscalers.v1 a"}, w.called())
		require.Equal(t, "autoscaling/v1", seen["apiVersion"])
		require.EqualValues(t, 60, at(t, seen, "spec", "targetCPUUtilizationPercentage"))
	})
}

func TestReinvocation(t *testing.T) {
	inWorld(t, only("MutatingAdmissionWebhook"), func(w *world) {
		w.register("mutating", "first", `,"reinvocationPolicy":"IfNeeded"`)
		w.register("mutating", "second", "")
		w.hooks["/first"] = allow
		w.hooks["/second"] = patch(`[{"op":"add","path":"/data/b","value":"2"}]`)
		w.make(configMaps, configMap("a"))
		require.Equal(t, []string{
			"/first CREATE configmaps.v1 a", "/second CREATE configmaps.v1 a", "/first CREATE configmaps.v1 a",
		}, w.called())
	})
}

func TestFailurePolicy(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "none", `,"failurePolicy":"Fail"`)
		require.Equal(t, `Internal error occurred: failed calling webhook "none.leat.example": failed to call webhook: `+
			"the server could not find the requested resource", w.refused(500, configMaps, configMap("a")))
		_, _, _ = w.send("PATCH", configurations+"validatingwebhookconfigurations/none", `{"webhooks":null}`)
		w.register("validating", "ignored", `,"failurePolicy":"Ignore"`)
		w.make(configMaps, configMap("a"))
		require.Len(t, w.called(), 2)
	})
}

func TestDryRunNeedsHooksWithoutSideEffects(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "check", "")
		w.hooks["/check"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			require.True(t, *r.DryRun)
			return allow(r)
		}
		code, _, _ := w.send("POST", configMaps+"?dryRun=All", configMap("a"))
		require.Equal(t, 201, code)
		_, _, _ = w.send("PATCH", configurations+"validatingwebhookconfigurations/check", `{"webhooks":null}`)
		require.Len(t, w.called(), 1)
	})
}

func TestSlowWebhooksDelayOnlyTheirRequest(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "slow", `,"timeoutSeconds":5`)
		w.hooks["/slow"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			<-time.After(time.Minute)
			return allow(r)
		}
		start := time.Now()
		message := make(chan string)
		go func() { message <- w.refused(500, configMaps, configMap("a")) }()
		synctest.Wait()
		require.Len(t, w.called(), 1)
		w.make(serviceAccounts, `{"metadata":{"name":"meanwhile"}}`)
		code, _, _ := w.send("GET", configMaps, "")
		require.Equal(t, 200, code)
		require.Zero(t, time.Since(start), "neither a read nor another write waits")
		require.Contains(t, <-message, `failed calling webhook "slow.leat.example": failed to call webhook: Post "https://hooks.example/slow?timeout=5s": context deadline exceeded`)
		require.Equal(t, 5*time.Second, time.Since(start))
		<-time.After(time.Minute) // the hook returns
	})
}

func TestAWriteThatComesBetweenIsSeen(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.make(configMaps, configMap("a"))
		w.register("validating", "check", "")
		calls := 0
		w.hooks["/check"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if calls++; calls == 1 { // a webhook may write to the server that calls it
				code, _, _ := w.send("PATCH", configMaps+"/a", `{"data":{"b":"2"}}`)
				require.Equal(t, 200, code)
			}
			return allow(r)
		}
		code, answer, _ := w.send("PATCH", configMaps+"/a", `{"data":{"c":"3"}}`)
		require.Equal(t, 200, code)
		require.Equal(t, object.Tree{"a": "1", "b": "2", "c": "3"}, answer["data"])
		require.Equal(t, 3, calls, "the first patch began again")
	})
}

// A patch has UpdateOptions, a deletion has all of its options, and a deletion of a collection has no name.
func TestOptionsOfRequests(t *testing.T) {
	inWorld(t, only("ValidatingAdmissionWebhook"), func(w *world) {
		w.register("validating", "check", "")
		var options string
		w.hooks["/check"] = func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			options = string(r.Options.Raw)
			return allow(r)
		}
		require.NotEmpty(t, w.make(configMaps, configMap("a")))
		code, tree, _ := w.send("PATCH", configMaps+"/a?fieldManager=m", `{"data":{"a":"2"}}`)
		require.Equal(t, 200, code, "%v", tree)
		require.JSONEq(t, `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"m"}`, options)
		w.called()

		code, _, _ = w.send("DELETE", configMaps+"/a", `{"preconditions":{"uid":"other"}}`)
		require.Equal(t, 409, code)
		require.Empty(t, w.called(), "the precondition is checked before admission")
		code, _, _ = w.send("DELETE", configMaps+"?gracePeriodSeconds=3&propagationPolicy=Background&labelSelector=!x", "")
		require.Equal(t, 200, code)
		require.Equal(t, []string{"/check DELETE configmaps.v1"}, w.called())
		require.JSONEq(t, `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":3,
			"propagationPolicy":"Background"}`, options)
	})
}
