package testserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
)

func TestDiscovery(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{Resource: mills, Versions: []string{"v1beta1"}, ShortNames: []string{"ml"}, Categories: []string{"all"}})
		get := func(path string) doc {
			a := b.do(http.MethodGet, path, nil, "Accept", "application/json")
			require.Equal(b, 200, a.code, "%s: %s", path, a.body)
			return a.json(t)
		}
		require.Equal(b, []any{"v1"}, get("/api")["versions"])
		groups := get("/apis")["groups"].([]any)
		var names []string
		for _, g := range groups {
			names = append(names, g.(doc)["name"].(string))
		}
		require.Equal(b, []string{"apps", "batch", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "leat.example"}, names)
		group := get("/apis/leat.example")
		require.Equal(b, "APIGroup", group["kind"])
		require.Equal(b, doc{"groupVersion": "leat.example/v1", "version": "v1"}, group["preferredVersion"])
		require.Len(b, group["versions"], 2)

		core := get("/api/v1")
		require.Equal(b, "v1", core["groupVersion"])
		byName := map[string]doc{}
		for _, r := range core["resources"].([]any) {
			byName[r.(doc)["name"].(string)] = r.(doc)
		}
		require.Equal(b, []any{"po"}, byName["pods"]["shortNames"])
		require.Equal(b, "pod", byName["pods"]["singularName"])
		require.Equal(b, true, byName["pods"]["namespaced"])
		require.Contains(b, byName["pods"]["verbs"], "deletecollection")
		require.Equal(b, false, byName["nodes"]["namespaced"])
		require.Contains(b, byName, "pods/status")
		require.Contains(b, byName, "pods/eviction")
		require.NotContains(b, byName, "configmaps/status")
		beta := get("/apis/leat.example/v1beta1")["resources"].([]any)
		require.Equal(b, "Mill", beta[0].(doc)["kind"])
		require.Equal(b, []any{"ml"}, beta[0].(doc)["shortNames"])

		require.Equal(b, "v1.37.2", get("/version")["gitVersion"])
		require.Equal(b, "37", get("/version")["minor"])
		require.Equal(b, "0.0.0.0/0", get("/api")["serverAddressByClientCIDRs"].([]any)[0].(doc)["clientCIDR"])
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/ping"} {
			require.Equal(b, "ok", string(b.do(http.MethodGet, path, nil).body))
		}
		for _, path := range []string{
			"/", "/nothing", "/apis/nothing", "/apis/nothing/v1/things", "/openapi/v2", "/healthz/nothing",
		} {
			a := b.do(http.MethodGet, path, nil)
			require.Equal(b, 404, a.code, path)
			require.Equal(b, "404 page not found\n", string(a.body), path)
		}
		for _, path := range []string{
			"/api/v2", "/api/v1/nothing", "/apis/apps/v2", "/apis/apps/v1/pods", "/version/x", "/api/v1/namespaces/default/nodes",
			"/apis/apps/v2/deployments", "/api/v1/pods/x", podsPath + "/a/nothing",
		} {
			status := b.refused(404, http.MethodGet, path, nil)
			require.Equal(b, metav1.StatusReasonNotFound, status.Reason, path)
			require.Equal(b, "the server could not find the requested resource", status.Message)
		}
		require.Equal(b, 404, b.do(http.MethodGet, "//api/v1/pods", nil).code)
		b.refused(405, http.MethodPost, "/api/v1/pods", pod("a"))
		b.refused(405, http.MethodDelete, "/api/v1/pods", nil)
		b.refused(405, http.MethodDelete, "/api/v1/namespaces", nil)
		b.refused(405, http.MethodPost, "/api/v1/watch/pods", pod("a"))
		b.refused(405, http.MethodPost, "/api/v1", nil)
		for _, path := range []string{"/api/v1", "/version", "/api/v1/pods", "/api/v1/watch/pods", podsPath + "/a"} {
			require.Equal(b, 405, b.do(http.MethodHead, path, nil).code, path)
		}
		for _, path := range []string{"/apis", "/apis/apps"} {
			require.Equal(b, 200, b.do(http.MethodDelete, path, nil).code, path)
		}
		b.refused(406, http.MethodGet, "/apis", nil, "Accept", "application/cbor")
	})
}

func TestDiscoveryInOtherMediaTypes(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		a := b.do(http.MethodGet, "/apis", nil, "Accept", "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		require.Equal(b, "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", a.header.Get("Content-Type"))
		require.Contains(b, string(a.body), "kind: APIGroupDiscoveryList")
	})
}

func TestVersionsOfAResource(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{Resource: mills, Versions: []string{"v1beta1"}})
		const beta = "/apis/leat.example/v1beta1/namespaces/default/mills"
		b.ok(http.MethodPost, millsPath, custom("Mill", "m"))
		u := b.ok(http.MethodGet, beta+"/m", nil)
		require.Equal(b, "leat.example/v1beta1", u.GetAPIVersion())
		u.Object["spec"] = doc{"wheels": 3}
		u = b.ok(http.MethodPut, beta+"/m", u)
		require.Equal(b, "leat.example/v1beta1", u.GetAPIVersion())
		w := b.watch(beta, "resourceVersion=100")
		defer w.close()
		e, err := w.next()
		require.NoError(b, err)
		require.Equal(b, "leat.example/v1beta1", e.Object["apiVersion"])
		require.Equal(b, "leat.example/v1beta1", b.list(beta).APIVersion)
		require.Equal(b, "leat.example/v1", b.list(millsPath).Items[0]["apiVersion"])
		b.refused(400, http.MethodPost, beta, doc{"apiVersion": "leat.example/v1", "metadata": meta("x")})
	})
}

func TestDefinePanics(t *testing.T) {
	srv := testserver.New(testserver.Options{})
	srv.Register(mills)
	require.PanicsWithValue(t, "testserver: define mills.leat.example: the resource is already defined", func() { srv.Register(mills) })
	require.Panics(t, func() { srv.Register(pods) })
	require.PanicsWithValue(t, `testserver: define "x": a resource needs a version, a kind and a plural name`, func() {
		srv.Register(api.Resource{Plural: "x"})
	})
}

// crd returns a CustomResourceDefinition for wheels.leat.example.
func crd(versions ...doc) doc {
	list := []any{}
	for _, v := range versions {
		list = append(list, v)
	}
	return doc{
		"metadata": meta("wheels.leat.example"),
		"spec": doc{
			"group": "leat.example", "scope": "Namespaced", "versions": list,
			"names": doc{"plural": "wheels", "kind": "Wheel", "shortNames": []any{"wh"}},
		},
	}
}

// TestScaleOfACustomResource has the fields of a Scale at places that the definition names, in one of two versions.
func TestScaleOfACustomResource(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		paths := doc{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.have", "labelSelectorPath": ".status.sel"}
		b.ok(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(
			doc{"name": "v1", "served": true, "storage": true, "subresources": doc{"scale": paths}},
			doc{"name": "v2", "served": true},
		))
		const wheelsPath = "/apis/leat.example/v1/namespaces/default/wheels"
		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "w", "spec", doc{"size": 4}, "status", doc{"have": 3, "sel": "a=b"}))
		scale := b.ok(http.MethodGet, wheelsPath+"/w/scale", nil)
		require.Equal(b, doc{"replicas": int64(4)}, scale.Object["spec"])
		require.Equal(b, doc{"replicas": int64(3), "selector": "a=b"}, scale.Object["status"])
		scale = b.ok(http.MethodPatch, wheelsPath+"/w/scale", `{"spec":{"replicas":7}}`, "Content-Type", mergePatch)
		require.Equal(b, doc{"replicas": int64(7)}, scale.Object["spec"])
		require.Equal(b, doc{"size": int64(7)}, b.ok(http.MethodGet, wheelsPath+"/w", nil).Object["spec"])
		b.refused(404, http.MethodGet, strings.Replace(wheelsPath, "v1", "v2", 1)+"/w/scale", nil)

		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "odd", "spec", doc{"size": "many"}))
		b.refused(500, http.MethodGet, wheelsPath+"/odd/scale", nil)
		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "none"))
		b.refused(500, http.MethodGet, wheelsPath+"/none/scale", nil)
	})
}

func TestCustomResourceDefinitions(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		const wheelsPath = "/apis/leat.example/v1/namespaces/default/wheels"
		require.Equal(b, 404, b.do(http.MethodGet, wheelsPath, nil).code)
		u := b.ok(http.MethodPost, crdPath, crd(
			doc{"name": "v1alpha1", "served": true},
			doc{"name": "v0", "served": false},
			doc{
				"name": "v1", "served": true, "storage": true, "subresources": doc{"status": doc{}, "scale": doc{}},
				"selectableFields": []any{doc{"jsonPath": ".spec.size"}},
			},
		))
		conditions := u.Object["status"].(doc)["conditions"].([]any)
		require.Equal(b, "Established", conditions[1].(doc)["type"])
		require.Equal(b, "True", conditions[1].(doc)["status"])
		require.Equal(b, "WheelList", u.Object["status"].(doc)["acceptedNames"].(doc)["listKind"])
		require.Equal(b, []any{"v1"}, u.Object["status"].(doc)["storedVersions"])

		versions := b.do(http.MethodGet, "/apis/leat.example", nil).json(t)["versions"].([]any)
		require.Len(b, versions, 2)
		require.Equal(b, "v1", versions[0].(doc)["version"])
		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "big", "spec", doc{"size": 9, "replicas": 2}))
		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "small", "spec", doc{"size": 1}))
		require.Equal(b, []string{"big"}, b.list(wheelsPath, "fieldSelector=spec.size=9").names())
		require.EqualValues(b, 2, b.ok(http.MethodGet, wheelsPath+"/big/scale", nil).Object["spec"].(doc)["replicas"])
		b.ok(http.MethodPatch, wheelsPath+"/big/scale", `{"spec":{"replicas":3}}`, "Content-Type", mergePatch)
		require.EqualValues(b, 3, b.ok(http.MethodGet, wheelsPath+"/big", nil).Object["spec"].(doc)["replicas"])
		b.ok(http.MethodPatch, wheelsPath+"/big/status", `{"status":{"x":1}}`, "Content-Type", mergePatch)

		// An update changes the served resource and keeps the objects.
		u = b.ok(http.MethodGet, crdPath+"/wheels.leat.example", nil)
		since := u.Object["status"].(doc)["conditions"].([]any)[0].(doc)["lastTransitionTime"]
		u.Object["spec"].(doc)["versions"] = []any{doc{"name": "v1", "served": true, "storage": true}}
		u = b.ok(http.MethodPut, crdPath+"/wheels.leat.example", u)
		require.Equal(b, since, u.Object["status"].(doc)["conditions"].([]any)[0].(doc)["lastTransitionTime"])
		require.Equal(b, 404, b.do(http.MethodGet, "/apis/leat.example/v1alpha1/wheels", nil).code)
		require.Equal(b, 404, b.do(http.MethodGet, wheelsPath+"/big/status", nil).code)
		require.Len(b, b.list(wheelsPath).Items, 2)

		// Deleting the definition deletes the objects. Watches show this, and then end.
		w := b.watch(wheelsPath, "resourceVersion="+b.ResourceVersion())
		b.ok(http.MethodDelete, crdPath+"/wheels.leat.example", nil)
		w.expect("DELETED big@108", "DELETED small@109")
		w.expectEnd()
		require.Equal(b, 404, b.do(http.MethodGet, wheelsPath, nil).code)
		b.ok(http.MethodPost, crdPath, crd(doc{"name": "v1", "served": true, "storage": true}))
		require.Empty(b, b.list(wheelsPath).Items)
	})
}

// TestMethodsOfCustomResources: kube-apiserver serves custom resources with other code. It takes a HEAD for a GET, and
// has an error of its own for methods without a verb.
func TestMethodsOfCustomResources(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const wheels = "/apis/leat.example/v1/namespaces/default/wheels"
		b.ok(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(doc{"name": "v1", "served": true, "storage": true}))
		b.ok(http.MethodPost, wheels, custom("Wheel", "a"))
		for path, code := range map[string]int{wheels: 200, wheels + "/a": 200, wheels + "/none": 404} {
			head := b.do(http.MethodHead, path, nil)
			require.Equal(b, code, head.code, path)
			require.Empty(b, head.body)
		}
		status := b.refused(405, http.MethodOptions, wheels, nil)
		require.Equal(b, ` is not supported on resources of kind "wheels.leat.example"`, status.Message)
	})
}

func TestBadCustomResourceDefinitions(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(mills)
		good := func() doc { return crd(doc{"name": "v1", "served": true, "storage": true}) }
		for name, spoil := range map[string]func(doc){
			"name":       func(d doc) { d["metadata"].(doc)["name"] = "wheels" },
			"group":      func(d doc) { delete(d["spec"].(doc), "group") },
			"scope":      func(d doc) { d["spec"].(doc)["scope"] = "Wide" },
			"names":      func(d doc) { delete(d["spec"].(doc), "names") },
			"kind":       func(d doc) { delete(d["spec"].(doc)["names"].(doc), "kind") },
			"versions":   func(d doc) { delete(d["spec"].(doc), "versions") },
			"not served": func(d doc) { d["spec"].(doc)["versions"] = []any{doc{"name": "v1", "served": false}} },
			"no spec":    func(d doc) { delete(d, "spec") },
		} {
			d := good()
			spoil(d)
			_, err := b.Create(crds, d)
			require.Error(b, err, name)
			a := b.do(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", d)
			require.Equal(b, 422, a.code, "%s: %s", name, a.body)
		}
		taken := good()
		taken["metadata"].(doc)["name"] = "mills.leat.example"
		taken["spec"].(doc)["names"].(doc)["plural"] = "mills"
		b.refused(409, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", taken)
	})
}

func TestSubresources(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, deploymentsPath, doc{
			"metadata": meta("d"), "spec": doc{"replicas": 2, "selector": doc{"matchLabels": doc{"app": "x"}}},
		})
		s := b.ok(http.MethodGet, deploymentsPath+"/d/scale", nil)
		require.Equal(b, "Scale", s.GetKind())
		require.Equal(b, "101", s.GetResourceVersion())
		require.Equal(b, doc{"replicas": int64(0), "selector": "app=x"}, s.Object["status"])
		s.Object["spec"] = doc{"replicas": 5}
		s = b.ok(http.MethodPut, deploymentsPath+"/d/scale", s)
		require.Equal(b, "102", s.GetResourceVersion())
		s.SetResourceVersion("101")
		b.refused(409, http.MethodPut, deploymentsPath+"/d/scale", s)
		b.ok(http.MethodPatch, deploymentsPath+"/d/scale", `{"spec":{"replicas":7}}`, "Content-Type", mergePatch)
		b.refused(415, http.MethodPatch, deploymentsPath+"/d/scale", `{}`, "Content-Type", strategicPatch)
		for _, wrong := range []string{`"9"`, `1.5`, `{}`} {
			b.refused(400, http.MethodPatch, deploymentsPath+"/d/scale", `{"spec":{"replicas":`+wrong+`}}`, "Content-Type", mergePatch)
		}
		b.refused(422, http.MethodPatch, deploymentsPath+"/d/scale", `{"spec":{"replicas":-1}}`, "Content-Type", mergePatch)
		u := b.ok(http.MethodGet, deploymentsPath+"/d", nil)
		require.EqualValues(b, 7, u.Object["spec"].(doc)["replicas"])
		require.EqualValues(b, 3, u.GetGeneration())
		b.refused(404, http.MethodGet, deploymentsPath+"/zz/scale", nil)
		b.refused(404, http.MethodPut, deploymentsPath+"/zz/scale", doc{"metadata": meta("zz")})
		b.refused(400, http.MethodPut, deploymentsPath+"/d/scale", doc{})
		b.refused(405, http.MethodPost, deploymentsPath+"/d/scale", doc{})

		b.ok(http.MethodPost, podsPath, pod("p"))
		a := b.do(http.MethodPost, podsPath+"/p/binding", doc{"metadata": meta("p"), "target": doc{"name": "n1"}})
		require.Equal(b, 201, a.code, "%s", a.body)
		b.refused(409, http.MethodPost, podsPath+"/p/binding", doc{"metadata": meta("p"), "target": doc{"name": "n2"}})
		b.refused(404, http.MethodPost, podsPath+"/zz/binding", doc{"metadata": meta("zz"), "target": doc{"name": "n2"}})
		status := b.refused(400, http.MethodPost, podsPath+"/p/binding", doc{"target": doc{"name": "n2"}})
		require.Equal(b, "name in URL does not match name in Binding object", status.Message)
		status = b.refused(500, http.MethodPost, podsPath+"/p/binding", doc{"metadata": meta("p")})
		require.Equal(b, "target.name: Required value", status.Message)
		require.Equal(b, []string{"p"}, b.list(podsPath, "fieldSelector=spec.nodeName=n1").names())
		b.refused(400, http.MethodPost, podsPath+"/p/eviction", doc{"metadata": meta("p"), "deleteOptions": 7})
		a = b.do(http.MethodPost, podsPath+"/p/eviction", doc{"metadata": meta("p"), "deleteOptions": doc{"gracePeriodSeconds": 0}})
		require.Equal(b, 201, a.code, "%s", a.body)
		b.refused(404, http.MethodPost, podsPath+"/p/eviction", doc{"metadata": meta("p")})

		const accounts = "/api/v1/namespaces/default/serviceaccounts"
		b.ok(http.MethodPost, accounts, doc{"metadata": meta("s")})
		token := b.ok(http.MethodPost, accounts+"/s/token", doc{"spec": doc{"expirationSeconds": 60}})
		require.Contains(b, token.Object["status"].(doc)["token"], "default/s")
		require.Equal(b, "2000-01-01T00:01:00Z", token.Object["status"].(doc)["expirationTimestamp"])
		b.refused(404, http.MethodPost, accounts+"/zz/token", doc{})
	})
}

func TestAuthentication(t *testing.T) {
	o := testserver.Options{
		Tokens: testserver.Tokens{"sesame": "ali", "other": "baba"},
		Authorize: func(r testserver.Request) error {
			if r.User == "baba" && r.Verb != "get" {
				return errors.New("only get")
			}
			return nil
		},
	}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", o.Tokens, o.Tokens, o.Tokens), "sesame")
	require.NotContains(t, fmt.Sprintf("%v %+v", o, o), "sesame")
	inBubble(t, o, func(b *bench) {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Authorization", "Basic sesame"}} {
			status := b.refused(401, http.MethodGet, podsPath, nil, headers...)
			require.Equal(b, metav1.StatusReasonUnauthorized, status.Reason)
			b.refused(401, http.MethodGet, "/api", nil, headers...)
		}
		require.Equal(b, 200, b.do(http.MethodGet, "/readyz", nil).code, "health is public")
		b.ok(http.MethodPost, podsPath, pod("a"), "Authorization", "Bearer sesame")
		b.ok(http.MethodGet, podsPath+"/a", nil, "Authorization", "Bearer other")
		status := b.refused(403, http.MethodGet, podsPath, nil, "Authorization", "Bearer other")
		require.Equal(b, metav1.StatusReasonForbidden, status.Reason)
		require.Equal(b, `pods is forbidden: User "baba" cannot list resource "pods" in API group "" in the namespace "default": only get`,
			status.Message)
		status = b.refused(403, http.MethodPut, deploymentsPath+"/x/status", nil, "Authorization", "Bearer other")
		require.Contains(b, status.Message, `cannot update resource "deployments/status" in API group "apps"`)
		status = b.refused(403, http.MethodGet, "/api/v1/nodes", nil, "Authorization", "Bearer other")
		require.Contains(b, status.Message, `at the cluster scope`)
		last := b.Requests()
		require.Equal(b, "baba", last[len(last)-1].User)
	})
	inBubble(t, testserver.Options{Authorize: func(testserver.Request) error { return errors.New("no") }}, func(b *bench) {
		require.Contains(b, b.refused(403, http.MethodGet, podsPath, nil).Message, "system:anonymous")
	})
}

func TestRequestLog(t *testing.T) {
	inBubble(t, testserver.Options{RequestLog: 20}, func(b *bench) {
		b.do(http.MethodGet, "/api/v1/pods?limit=5", nil, "User-Agent", "leat/1", "Accept", "application/json")
		b.do(http.MethodPatch, deploymentsPath+"/d/status", `{}`, "Content-Type", mergePatch)
		b.do(http.MethodGet, "/version", nil)
		log := b.Requests()
		require.Len(b, log, 3)
		r := log[0]
		require.Equal(b, "GET /api/v1/pods limit=5 leat/1 list",
			fmt.Sprintf("%s %s limit=%s %s %s", r.Method, r.Path, r.Query.Get("limit"), r.UserAgent, r.Verb))
		r = log[1]
		require.Equal(b, "patch apps v1 deployments status default d", fmt.Sprint(r.Verb, " ", r.Group, " ", r.Version, " ",
			r.Resource, " ", r.Subresource, " ", r.Namespace, " ", r.Name))
		require.Equal(b, "get", log[2].Verb)
		b.ForgetRequests()
		require.Empty(b, b.Requests())
		for i := range 50 {
			b.do(http.MethodGet, fmt.Sprintf("/nothing/%d", i), nil)
		}
		log = b.Requests()
		require.LessOrEqual(b, len(log), 20)
		require.Equal(b, "/nothing/49", log[len(log)-1].Path)
	})
	inBubble(t, testserver.Options{RequestLog: -1}, func(b *bench) {
		b.do(http.MethodGet, "/version", nil)
		require.Empty(b, b.Requests())
	})
}
