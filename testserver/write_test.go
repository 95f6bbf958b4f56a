package testserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

const (
	deploymentsPath = "/apis/apps/v1/namespaces/default/deployments"
	leasesPath      = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	millsPath       = "/apis/leat.example/v1/namespaces/default/mills"
)

func meta(name string, more ...any) doc {
	out := doc{"name": name}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func TestCreate(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		u := b.ok(http.MethodPost, podsPath, doc{
			"kind": "Pod", "apiVersion": "v1",
			"metadata": meta("a", "creationTimestamp", nil, "uid", "mine", "generation", 7, "selfLink", "/x",
				"deletionTimestamp", "2001-01-01T00:00:00Z", "labels", doc{"app": "x"}, "annotations", doc{}),
			"spec":   doc{"nodeName": "n"},
			"status": doc{"phase": "Running"},
		})
		require.Equal(b, "Pod", u.GetKind())
		require.Equal(b, "default", u.GetNamespace())
		require.Equal(b, "101", u.GetResourceVersion())
		require.Equal(b, types.UID("a389c35a-0000-4000-8000-000000000005"), u.GetUID())
		require.EqualValues(b, 1, u.GetGeneration())
		require.Equal(b, time.Now().UTC().Format(time.RFC3339), u.GetCreationTimestamp().UTC().Format(time.RFC3339))
		require.Nil(b, u.GetDeletionTimestamp())
		require.Equal(b, doc{"phase": "Pending"}, u.Object["status"], "the status is a subresource")
		require.NotContains(b, u.Object["metadata"], "annotations")
		require.NotContains(b, u.Object["metadata"], "selfLink")
		require.Equal(b, "101", b.ResourceVersion())

		a := b.do(http.MethodPost, podsPath, pod("b"))
		require.Equal(b, http.StatusCreated, a.code)
		yaml := b.ok(http.MethodPost, mapsPath, "metadata:\n  name: from-yaml\ndata:\n  a: b\n", "Content-Type", "application/yaml")
		require.Equal(b, doc{"a": "b"}, yaml.Object["data"])
	})
}

func TestWriteRefusals(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(mills)
		b.fill(1)
		long := strings.Repeat("x", 254)
		for _, row := range []struct {
			method, path string
			body         any
			code         int
			reason       metav1.StatusReason
			message      string
		}{
			{"POST", podsPath, pod("a"), 409, "AlreadyExists", `pods "a" already exists`},
			{"POST", podsPath, doc{}, 422, "Invalid", "name or generateName is required"},
			{"POST", podsPath, pod("No"), 422, "Invalid", "RFC 1123"},
			{"POST", podsPath, pod(long), 422, "Invalid", "must be no more than 253"},
			{"POST", "/api/v1/namespaces", doc{"metadata": meta("a.b")}, 422, "Invalid", "must not contain dots"},
			{"POST", podsPath, pod("b", "bad/label/x", "y"), 422, "Invalid", "metadata.labels"},
			{"POST", podsPath, "{", 400, "BadRequest", ""},
			{"POST", podsPath, "[]", 400, "BadRequest", ""},
			{"POST", podsPath, "null", 422, "Invalid", ""},
			{"POST", podsPath, doc{"metadata": 7}, 400, "BadRequest", "metadata must be an object"},
			{"POST", podsPath, doc{"metadata": doc{"name": 7}}, 400, "BadRequest", "metadata.name"},
			{"POST", podsPath, doc{"metadata": meta("x", "labels", doc{"a": 1})}, 400, "BadRequest", "metadata.labels.a"},
			{"POST", podsPath, doc{"metadata": meta("x", "labels", "a")}, 400, "BadRequest", "metadata.labels"},
			{"POST", podsPath, doc{"metadata": meta("x", "finalizers", []int{1})}, 400, "BadRequest", "finalizers"},
			{"POST", podsPath, doc{"metadata": meta("x", "ownerReferences", "a")}, 400, "BadRequest", "ownerReferences"},
			{"POST", podsPath, doc{"kind": "ConfigMap", "metadata": meta("x")}, 400, "BadRequest", "kind"},
			{"POST", podsPath, doc{"apiVersion": "v2", "metadata": meta("x")}, 400, "BadRequest", "API version"},
			{"POST", podsPath, doc{"metadata": meta("x", "namespace", "other")}, 400, "BadRequest", "namespace"},

			{"POST", podsPath, doc{"metadata": meta("x", "resourceVersion", "1")}, 500, "", "should not be set"},
			{"POST", podsPath + "/a", pod("a"), 405, "MethodNotAllowed", ""},
			{"PUT", podsPath, pod("a"), 405, "MethodNotAllowed", ""},
			{"PATCH", podsPath, pod("a"), 405, "MethodNotAllowed", ""},
			{"OPTIONS", podsPath, nil, 405, "MethodNotAllowed", ""},
			{"POST", podsPath + "/a/status", nil, 405, "MethodNotAllowed", ""},
			{"PUT", podsPath + "/zz", pod("zz"), 404, "NotFound", `pods "zz" not found`},
			{"PUT", podsPath + "/zz/status", pod("zz"), 404, "NotFound", ""},
			{"PUT", leasesPath + "/zz/status", doc{}, 404, "NotFound", "could not find the requested resource"},
			{"PUT", leasesPath + "/zz", doc{"metadata": meta("zz", "uid", "deleted")}, 409, "Conflict", "UID in object meta: "},
			{"PUT", podsPath + "/a", pod("b"), 400, "BadRequest", "does not match the name on the URL"},
			{"PUT", podsPath + "/a", doc{"metadata": meta("a", "uid", "other")}, 409, "Conflict", "UID in precondition"},
			{"PUT", podsPath + "/a", doc{"metadata": meta("a", "resourceVersion", "100")}, 409, "Conflict", "modified"},
			{"PUT", podsPath + "/a", doc{"metadata": meta("a", "resourceVersion", "x")}, 500, "", "invalid syntax"},
			{"GET", podsPath + "/zz", nil, 404, "NotFound", `pods "zz" not found`},
			{"DELETE", podsPath + "/zz", nil, 404, "NotFound", ""},
			{"PATCH", podsPath + "/zz", doc{}, 415, "UnsupportedMediaType", ""},
			{"POST", podsPath + "?dryRun=Some", pod("x"), 422, "Invalid", "dryRun"},
			{"POST", podsPath + "?fieldManager=" + strings.Repeat("x", 129), pod("x"), 422, "Invalid", "fieldManager"},
			{"DELETE", podsPath + "/a", doc{"kind": "Pod"}, 400, "BadRequest", `no kind "Pod" is registered for version "meta.k8s.io/v1"`},
			{"DELETE", podsPath + "/a", `{"kind":`, 400, "BadRequest", "couldn't get version/kind; json parse error: unexpected end of JSON input"},
			{"DELETE", podsPath + "/a", "{", 400, "BadRequest", ""},
			{"DELETE", podsPath + "/a?gracePeriodSeconds=x", nil, 400, "BadRequest", ""},
			{"DELETE", podsPath + "/a", doc{"propagationPolicy": "Sideways"}, 422, "Invalid", "propagationPolicy"},
			{"DELETE", podsPath + "/a", doc{"orphanDependents": true, "propagationPolicy": "Orphan"}, 422, "Invalid", ""},
			{"DELETE", podsPath + "?sendInitialEvents=true", nil, 422, "Invalid", ""},
			{"DELETE", podsPath + "?limit=x", nil, 400, "BadRequest", ""},
			{"DELETE", podsPath + "?fieldSelector=spec.x=y", nil, 400, "BadRequest", ""},
			{"POST", podsPath, strings.Repeat(" ", 3<<20) + "{}", 413, "RequestEntityTooLarge", ""},
		} {
			a := b.do(row.method, row.path, row.body, "Content-Type", "application/json")
			require.Equal(b, row.code, a.code, "%s %s %v: %s", row.method, row.path, row.body, a.body)

			status := a.status(t)
			require.Equal(b, row.reason, status.Reason, "%s", a.body)
			require.Contains(b, status.Message, row.message)
		}
		b.refused(415, http.MethodPost, podsPath, "x", "Content-Type", "application/vnd.kubernetes.protobuf")
		b.refused(415, http.MethodPost, podsPath, "x", "Content-Type", "broken/")
		b.refused(415, http.MethodDelete, podsPath+"/a", "x", "Content-Type", "text/plain")
		b.refused(400, http.MethodDelete, podsPath+"/a", "x", "Content-Type", "application/yaml")
		b.refused(400, http.MethodDelete, podsPath+"/a", "x", "Content-Type", "application/vnd.kubernetes.protobuf")
		b.refused(400, http.MethodPost, podsPath, "\tx", "Content-Type", "application/yaml")
		// None of these requests changed anything.
		require.Equal(b, "101", b.ResourceVersion())
		// A namespace in a cluster-scoped object is removed.
		require.Empty(b, b.ok(http.MethodPost, "/api/v1/nodes", doc{"metadata": meta("x", "namespace", "other")}).GetNamespace())
	})
}

func TestInvalidNamesItsCauses(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		status := b.refused(422, http.MethodPost, podsPath, doc{})
		require.Equal(b, "Pod", status.Details.Kind)
		require.Equal(b, []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueRequired, Field: "metadata.name",
			Message: "Required value: name or generateName is required",
		}}, status.Details.Causes)
		status = b.refused(404, http.MethodGet, deploymentsPath+"/x", nil)
		require.Equal(b, &metav1.StatusDetails{Name: "x", Group: "apps", Kind: "deployments"}, status.Details)
	})
}

// TestInvalidMetadata sends metadata that no object may have.
func TestInvalidMetadata(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, podsPath, pod("good"))
		wrong := doc{"metadata": doc{"ownerReferences": []any{7}}}
		b.refused(400, http.MethodPatch, podsPath+"/good", wrong, "Content-Type", mergePatch)
		deleted := doc{"metadata": doc{"deletionTimestamp": "2026-01-01T00:00:00Z"}}
		status := b.refused(422, http.MethodPatch, podsPath+"/good", deleted, "Content-Type", mergePatch)
		require.Equal(b, "metadata.deletionTimestamp", status.Details.Causes[0].Field)
	})
}

func TestUpdate(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(mills)
		created := b.ok(http.MethodPost, podsPath, pod("a"))
		created.Object["spec"].(doc)["nodeName"] = "n"
		created.Object["status"] = doc{"phase": "Running"}
		created.Object["metadata"].(doc)["creationTimestamp"] = "1999-01-01T00:00:00Z"
		created.Object["metadata"].(doc)["generation"] = 40
		u := b.ok(http.MethodPut, podsPath+"/a", created)
		require.Equal(b, "102", u.GetResourceVersion())
		require.EqualValues(b, 2, u.GetGeneration())
		require.Equal(b, 2000, u.GetCreationTimestamp().UTC().Year())
		require.Equal(b, doc{"phase": "Pending"}, u.Object["status"])

		// The same object again is a conflict. Without a version there is no check, and an update that changes nothing
		// writes nothing.
		status := b.refused(409, http.MethodPut, podsPath+"/a", created)
		require.Contains(b, status.Message, "the object has been modified; please apply your changes to the latest version")
		u.SetResourceVersion("")
		require.Equal(b, "102", b.ok(http.MethodPut, podsPath+"/a", u).GetResourceVersion())
		u.SetLabels(map[string]string{"app": "x"})
		u = b.ok(http.MethodPut, podsPath+"/a", u)
		require.Equal(b, "103", u.GetResourceVersion())
		require.EqualValues(b, 2, u.GetGeneration(), "the generation does not count metadata")

		// Custom resources, leases and service accounts need a version.
		b.ok(http.MethodPost, millsPath, custom("Mill", "m"))
		status = b.refused(422, http.MethodPut, millsPath+"/m", custom("Mill", "m"))
		require.Equal(b, "metadata.resourceVersion", status.Details.Causes[0].Field)

		// An update creates objects of some kinds.
		a := b.do(http.MethodPut, leasesPath+"/l", doc{"metadata": meta("l", "resourceVersion", "3")})
		require.Equal(b, http.StatusCreated, a.code, "%s", a.body)
	})
}

func TestStatusSubresource(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{Resource: mills})
		b.Define(testserver.Definition{
			Resource: api.Resource{Group: "leat.example", Version: "v1", Kind: "Plain", Plural: "plains", Namespaced: true}, NoStatus: true,
		})
		u := b.ok(http.MethodPost, millsPath, custom("Mill", "m", "spec", doc{"wheels": 1}, "status", doc{"turns": 5}))
		require.NotContains(b, u.Object, "status")

		u.Object["status"] = doc{"turns": 7}
		u.Object["spec"] = doc{"wheels": 9}
		u.SetLabels(map[string]string{"a": "b"})
		s := b.ok(http.MethodPut, millsPath+"/m/status", u)
		require.Equal(b, doc{"turns": int64(7)}, s.Object["status"])
		require.Equal(b, doc{"wheels": int64(1)}, s.Object["spec"], "the rest is ignored")
		require.Nil(b, s.GetLabels())
		require.EqualValues(b, 1, s.GetGeneration())

		s.Object["status"] = doc{"turns": 99}
		s.Object["spec"] = doc{"wheels": 2}
		s = b.ok(http.MethodPut, millsPath+"/m", s)
		require.Equal(b, doc{"turns": int64(7)}, s.Object["status"], "the status is ignored")
		require.Equal(b, doc{"wheels": int64(2)}, s.Object["spec"])
		require.EqualValues(b, 2, s.GetGeneration())

		s = b.ok(http.MethodPatch, millsPath+"/m/status", `{"spec":{"wheels":3},"status":{"turns":8}}`,
			"Content-Type", "application/merge-patch+json")
		require.Equal(b, doc{"turns": int64(8)}, s.Object["status"])
		require.Equal(b, doc{"wheels": int64(2)}, s.Object["spec"])
		require.Equal(b, s.Object, b.ok(http.MethodGet, millsPath+"/m/status", nil).Object)
		stale := s.DeepCopy()
		stale.SetResourceVersion("101")
		b.refused(409, http.MethodPut, millsPath+"/m/status", stale)

		// Without the subresource, status is a normal field.
		const plains = "/apis/leat.example/v1/namespaces/default/plains"
		p := b.ok(http.MethodPost, plains, custom("Plain", "p", "status", doc{"x": 1}))
		require.Equal(b, doc{"x": int64(1)}, p.Object["status"])
		p.Object["status"] = doc{"x": 2}
		require.EqualValues(b, 2, b.ok(http.MethodPut, plains+"/p", p).GetGeneration())
		require.Equal(b, 404, b.do(http.MethodPut, plains+"/p/status", p).code)
	})
}

func TestGenerateName(t *testing.T) {
	names := func(seed uint64) (out []string) {
		inBubble(t, testserver.Options{Seed: seed}, func(b *bench) {
			for range 50 {
				u := b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"generateName": "m-"}})
				require.Regexp(b, `^m-[a-z0-9]{5}$`, u.GetName())
				require.Equal(b, "m-", u.GetGenerateName())
				out = append(out, u.GetName(), string(u.GetUID()))
			}
			long := b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"generateName": strings.Repeat("x", 100)}})
			require.Len(b, long.GetName(), 63)
			u := b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"generateName": "m-", "name": "given"}})
			require.Equal(b, "given", u.GetName())
		})
		return out
	}
	require.Equal(t, names(1), names(1), "equal seeds give equal names")
	require.NotEqual(t, names(1), names(2))
}

func TestFinalizers(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		w := b.watch(deploymentsPath, "resourceVersion=100")
		defer w.close()
		b.ok(http.MethodPost, deploymentsPath, doc{"metadata": meta("d", "finalizers", []string{"x/a", "x/b"})})
		u := b.ok(http.MethodDelete, deploymentsPath+"/d", nil)
		require.Equal(b, "102", u.GetResourceVersion())
		require.Equal(b, time.Now().UTC(), u.GetDeletionTimestamp().UTC())
		require.EqualValues(b, 0, *u.GetDeletionGracePeriodSeconds())
		require.EqualValues(b, 2, u.GetGeneration())
		// A second delete changes nothing.
		<-time.After(time.Minute)
		require.Equal(b, u.Object, b.ok(http.MethodDelete, deploymentsPath+"/d", nil).Object)

		more := u.DeepCopy()
		more.SetFinalizers([]string{"x/a", "x/c"})
		status := b.refused(422, http.MethodPut, deploymentsPath+"/d", more)
		require.Equal(b, "metadata.finalizers", status.Details.Causes[0].Field)

		// An update cannot remove the deletionTimestamp.
		fewer := u.DeepCopy()
		fewer.SetFinalizers([]string{"x/b"})
		fewer.SetDeletionTimestamp(nil)
		fewer = b.ok(http.MethodPut, deploymentsPath+"/d", fewer)
		require.NotNil(b, fewer.GetDeletionTimestamp())

		last := b.ok(http.MethodPatch, deploymentsPath+"/d", `{"metadata":{"finalizers":null}}`,
			"Content-Type", "application/merge-patch+json")
		require.Equal(b, "103", last.GetResourceVersion(), "the write is not stored, and the removal has no answer")
		require.Empty(b, last.GetFinalizers())
		w.expect("ADDED d@101", "MODIFIED d@102", "MODIFIED d@103")
		e := must.Get(w.next())(b)
		require.Equal(b, "DELETED d@104", e.String())
		require.Equal(b, []any{"x/b"}, e.Object["metadata"].(doc)["finalizers"], "the event carries what was stored")
		b.refused(404, http.MethodGet, deploymentsPath+"/d", nil)
	})
}

func TestNamespacesOfTheServerStay(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		for _, name := range []string{"default", "kube-public", "kube-system"} {
			status := b.refused(403, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
			require.Contains(b, status.Message, "this namespace may not be deleted")
		}
		before := b.ok(http.MethodGet, "/api/v1/namespaces/default", nil)
		after := b.ok(http.MethodPatch, "/api/v1/namespaces/default", `{"metadata":{"labels":null}}`,
			"Content-Type", "application/merge-patch+json")
		require.Equal(b, before.Object, after.Object, "the label with the name cannot be removed")
	})
}

func TestDryRun(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		u := b.ok(http.MethodPost, mapsPath+"?dryRun=All", configMap("a"))
		require.NotEmpty(b, u.GetUID())
		require.Empty(b, u.GetResourceVersion())
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		u = b.ok(http.MethodPut, mapsPath+"/a?dryRun=All", configMap("a", "k", "w"))
		require.Equal(b, doc{"k": "w"}, u.Object["data"])
		require.Equal(b, "101", u.GetResourceVersion())
		b.ok(http.MethodPatch, mapsPath+"/a?dryRun=All", `{"data":null}`, "Content-Type", "application/merge-patch+json")
		b.ok(http.MethodDelete, mapsPath+"/a?dryRun=All", nil)
		b.ok(http.MethodDelete, mapsPath+"/a", doc{"dryRun": []string{"All"}})
		require.Equal(b, doc{"k": "v"}, b.ok(http.MethodGet, mapsPath+"/a", nil).Object["data"])
		require.Equal(b, "101", b.ResourceVersion())
	})
}

func TestNamespaces(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		require.Equal(b, []string{"default", "kube-node-lease", "kube-public", "kube-system"}, b.list("/api/v1/namespaces").names())
		u := b.ok(http.MethodPost, "/api/v1/namespaces", doc{"metadata": meta("mill")})
		require.Equal(b, map[string]string{"kubernetes.io/metadata.name": "mill"}, u.GetLabels())
		require.Equal(b, doc{"phase": "Active"}, u.Object["status"])
		require.Equal(b, u.Object, b.ok(http.MethodGet, "/api/v1/namespaces/mill", nil).Object)
		require.Equal(b, u.Object, b.ok(http.MethodGet, "/api/v1/namespaces/mill/status", nil).Object)
		require.Equal(b, 404, b.do(http.MethodGet, "/api/v1/namespaces/mill/namespaces", nil).code)
		// An empty namespace is marked and then removed at once.
		w := b.watch("/api/v1/namespaces", "resourceVersion=101")
		defer w.close()
		u = b.ok(http.MethodDelete, "/api/v1/namespaces/mill", nil)
		require.Equal(b, doc{"phase": "Terminating"}, u.Object["status"])
		w.expect("MODIFIED mill@102", "DELETED mill@103")
		b.refused(404, http.MethodGet, "/api/v1/namespaces/mill", nil)
		// Other namespaces need not exist.
		b.ok(http.MethodPost, "/api/v1/namespaces/anywhere/configmaps", doc{"metadata": meta("x")})
	})
	inBubble(t, testserver.Options{StrictNamespaces: true}, func(b *bench) {
		status := b.refused(404, http.MethodPost, "/api/v1/namespaces/anywhere/configmaps", doc{"metadata": meta("x")})
		require.Equal(b, `namespaces "anywhere" not found`, status.Message)
		b.ok(http.MethodPost, mapsPath, doc{"metadata": meta("x")})
	})
}

func TestNamespaceDeletion(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const inMill = "/api/v1/namespaces/mill/configmaps"
		b.ok(http.MethodPost, "/api/v1/namespaces", doc{"metadata": meta("mill")})
		b.ok(http.MethodPost, inMill, doc{"metadata": meta("plain")})
		b.ok(http.MethodPost, inMill, doc{"metadata": meta("held", "finalizers", []string{"x/y"})})
		b.ok(http.MethodPost, "/api/v1/namespaces/mill-2/configmaps", doc{"metadata": meta("neighbour")})

		u := b.ok(http.MethodDelete, "/api/v1/namespaces/mill", nil)
		require.Equal(b, doc{"phase": "Terminating"}, u.Object["status"])
		require.NotNil(b, u.GetDeletionTimestamp())
		require.Equal(b, []string{"held"}, b.list(inMill).names())
		status := b.refused(403, http.MethodPost, inMill, doc{"metadata": meta("late")})
		require.Equal(b, metav1.CauseType("NamespaceTerminating"), status.Details.Causes[0].Type)
		require.Equal(b, u.Object, b.ok(http.MethodDelete, "/api/v1/namespaces/mill", nil).Object, "deleting it again")

		b.ok(http.MethodPatch, inMill+"/held", `{"metadata":{"finalizers":[]}}`, "Content-Type", "application/merge-patch+json")
		b.refused(404, http.MethodGet, "/api/v1/namespaces/mill", nil)
		require.Equal(b, []string{"neighbour"}, b.list("/api/v1/configmaps").names())
	})
}

func TestDirectAPI(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		key := api.Key{Namespace: "default", Name: "a"}
		w := b.watch(podsPath, "resourceVersion=100")
		defer w.close()
		p := pod("a")
		p["status"] = doc{"phase": "Running"}
		u, err := b.Create(pods, p)
		require.NoError(b, err)
		require.Equal(b, "Running", u.Object["status"].(doc)["phase"], "Create keeps the status")
		_, err = b.Create(pods, p)
		require.ErrorContains(b, err, "already exists")
		u, err = b.Edit(pods, key, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
		require.NoError(b, err)
		got, err := b.Get(pods, key)
		require.NoError(b, err)
		require.Equal(b, u, got)
		u.SetResourceVersion("1")
		_, err = b.Update(pods, u)
		require.ErrorContains(b, err, "modified")
		all, err := b.List(pods, "")
		require.NoError(b, err)
		require.Equal(b, []*unstructured.Unstructured{got}, all)
		none, err := b.List(pods, "other")
		require.NoError(b, err)
		require.Empty(b, none)
		require.Error(b, b.Delete(pods, key, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}))
		require.NoError(b, b.Delete(pods, key))
		require.ErrorContains(b, b.Delete(pods, key), "not found")
		_, err = b.Get(pods, key)
		require.ErrorContains(b, err, "not found")
		_, err = b.Edit(pods, key, func(*unstructured.Unstructured) {})
		require.ErrorContains(b, err, "not found")
		w.expect("ADDED a@101", "MODIFIED a@102", "DELETED a@103")

		_, err = b.Create(mills, doc{})
		require.ErrorContains(b, err, "mills.leat.example is not served")
		_, err = b.Create(pods, 7)
		require.ErrorContains(b, err, "does not encode to a JSON object")
		_, err = b.Update(pods, make(chan int))
		require.ErrorContains(b, err, "encode")
	})
}

func TestSnapshots(t *testing.T) {
	inBubble(t, testserver.Options{History: 1}, func(b *bench) {
		key := api.Key{Namespace: "default", Name: "a"}
		b.fill(2)
		old := b.Snapshot()
		b.edit(pods, key, "spec.nodeName", "n")
		require.NoError(b, b.Delete(pods, api.Key{Namespace: "default", Name: "b"}))
		must.Get(b.Create(configMaps, configMap("x")))(b)

		require.Equal(b, "102", old.ResourceVersion())
		require.Equal(b, 2, old.Len(pods))
		require.Equal(b, map[api.Key]string{key: "101", {Namespace: "default", Name: "b"}: "102"}, old.Versions(pods))
		u, ok := old.Get(pods, key)
		require.True(b, ok)
		require.Equal(b, "Pod", u.GetKind())
		require.NotContains(b, u.Object["spec"], "nodeName")
		_, ok = old.Get(configMaps, api.Key{Namespace: "default", Name: "x"})
		require.False(b, ok)
		var names []string
		for u := range old.All(pods) {
			names = append(names, u.GetName())
		}
		require.Equal(b, []string{"a", "b"}, names)
		for range old.All(pods) {
			break
		}
		require.Equal(b, "105", b.Snapshot().ResourceVersion())
	})
}

// TestStatusOfBuiltins sends metadata with a status. Built-in resources take them, except for a few fields.
func TestStatusOfBuiltins(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{Resource: mills})
		for path, kept := range map[string][]string{
			deploymentsPath: {"labels"}, podsPath: {"ownerReferences"}, millsPath: {"labels", "annotations", "finalizers", "ownerReferences"},
			"/apis/apps/v1/namespaces/default/replicasets": nil, "/api/v1/namespaces/default/services": nil,
		} {
			before := b.ok(http.MethodPost, path, empty(path))
			sent := before.DeepCopy()
			fields := doc{
				"labels": doc{"a": "b"}, "annotations": doc{"a": "b"}, "finalizers": []any{"example.org/a"},
				"ownerReferences": []any{doc{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}},
			}
			for name, value := range fields {
				sent.Object["metadata"].(doc)[name] = value
			}
			sent.Object["status"], sent.Object["spec"] = doc{"x": "y"}, doc{"x": "y"}
			after := b.ok(http.MethodPut, path+"/x/status", sent)
			require.Equal(b, doc{"x": "y"}, after.Object["status"], path)
			require.NotContains(b, after.Object, "spec", path)
			require.Equal(b, before.GetGeneration(), after.GetGeneration(), path)
			require.Equal(b, before.GetUID(), after.GetUID(), path)
			for name, value := range fields {
				if slices.Contains(kept, name) {
					require.NotContains(b, after.Object["metadata"], name, path)
				} else {
					require.Equal(b, value, after.Object["metadata"].(doc)[name], "%s %s", path, name)
				}
			}
			after = b.ok(http.MethodPatch, path+"/x/status?fieldManager=m&force=true", doc{
				"apiVersion": before.GetAPIVersion(), "kind": before.GetKind(),
				"metadata": meta("x", "labels", doc{"applied": "yes"}, "annotations", doc{"applied": "yes"}),
			}, "Content-Type", "application/apply-patch+yaml")
			require.Equal(b, !slices.Contains(kept, "labels"), after.GetLabels()["applied"] == "yes", path)
			require.Equal(b, !slices.Contains(kept, "annotations"), after.GetAnnotations()["applied"] == "yes", path)
		}
	})
}

// empty returns an object without content for a path. Custom resources need kind and apiVersion.
func empty(path string) doc {
	if path == millsPath {
		return custom("Mill", "x")
	}
	return doc{"metadata": meta("x")}
}

// TestAnnotationsInGeneration annotates objects. Of the built-in resources, only Deployments count that in their
// generation.
func TestAnnotationsInGeneration(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{Resource: mills})
		for path, counted := range map[string]bool{
			deploymentsPath: true, podsPath: false, millsPath: false, "/apis/apps/v1/namespaces/default/replicasets": false,
		} {
			b.ok(http.MethodPost, path, empty(path))
			generation := int64(1)
			for _, annotations := range []string{`{"a":"b"}`, `{"a":"c"}`, `{"a":null}`} {
				u := b.ok(http.MethodPatch, path+"/x", `{"metadata":{"annotations":`+annotations+`}}`, "Content-Type", mergePatch)
				if counted {
					generation++
				}
				require.Equal(b, generation, u.GetGeneration(), "%s %s", path, annotations)
			}
			u := b.ok(http.MethodPatch, path+"/x", `{"metadata":{"annotations":{},"labels":{"a":"b"}}}`, "Content-Type", mergePatch)
			require.Equal(b, generation, u.GetGeneration(), "%s: none are none, and labels do not count", path)
		}
	})
}

func TestGracePeriods(t *testing.T) {
	running := pod("a")
	running["spec"].(doc)["nodeName"] = "n"
	short := pod("a")
	short["spec"].(doc)["nodeName"] = "n"
	short["spec"].(doc)["terminationGracePeriodSeconds"] = 5
	ended := pod("a")
	ended["spec"].(doc)["nodeName"] = "n"
	ended["status"] = doc{"phase": "Succeeded"}
	for name, row := range map[string]struct {
		pod       doc
		query     string
		immediate bool
		want      int // -1 means that the pod is removed at once
	}{
		"no node":        {pod("a"), "", false, -1},
		"no node, asked": {pod("a"), "?gracePeriodSeconds=9", false, -1},
		"default":        {running, "", false, 30},
		"asked":          {running, "?gracePeriodSeconds=9", false, 9},
		"of the pod":     {short, "", false, 5},
		"none":           {running, "?gracePeriodSeconds=0", false, -1},
		"ended":          {ended, "", false, -1},
		"no kubelet":     {running, "", true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{ImmediateDeletion: row.immediate}, func(b *bench) {
				must.Get(b.Create(pods, row.pod))(b)
				b.ok(http.MethodDelete, podsPath+"/a"+row.query, nil)
				if row.want < 0 {
					b.refused(404, http.MethodGet, podsPath+"/a", nil)
					return
				}
				u := b.ok(http.MethodGet, podsPath+"/a", nil)
				require.EqualValues(b, row.want, *u.GetDeletionGracePeriodSeconds())
				require.Equal(b, time.Now().Add(time.Duration(row.want)*time.Second).UTC(), u.GetDeletionTimestamp().UTC())
				// A second delete can shorten the grace period, but not extend it.
				require.Equal(b, u.Object, b.ok(http.MethodDelete, podsPath+"/a?gracePeriodSeconds=600", nil).Object)
				u = b.ok(http.MethodDelete, podsPath+"/a?gracePeriodSeconds=1", nil)
				require.EqualValues(b, 1, *u.GetDeletionGracePeriodSeconds())
				// The kubelet confirms the deletion.
				b.ok(http.MethodDelete, podsPath+"/a?gracePeriodSeconds=0", nil)
				b.refused(404, http.MethodGet, podsPath+"/a", nil)
			})
		})
	}
}

func TestABindingIsNoChangeOfTheSpec(t *testing.T) {
	inBubble(t, testserver.Options{ManagedFields: true}, func(b *bench) {
		before := b.ok(http.MethodPost, podsPath, pod("p"))
		b.ok(http.MethodPost, podsPath+"/p/binding", doc{"metadata": meta("p"), "target": doc{"name": "n"}})
		after := b.ok(http.MethodGet, podsPath+"/p", nil)
		require.NotEqual(b, before.GetResourceVersion(), after.GetResourceVersion())
		require.EqualValues(b, 1, after.GetGeneration())
		require.Equal(b, before.GetManagedFields(), after.GetManagedFields())
	})
}

func TestManagedFieldsStayDeleted(t *testing.T) {
	inBubble(t, testserver.Options{ManagedFields: true}, func(b *bench) {
		require.NotEmpty(b, b.ok(http.MethodPost, mapsPath, configMap("a", "k", "1")).GetManagedFields())
		cleared := configMap("a", "k", "1")
		cleared["metadata"].(doc)["managedFields"] = []any{doc{}}
		require.Empty(b, b.ok(http.MethodPut, mapsPath+"/a", cleared).GetManagedFields())
		require.Empty(b, b.ok(http.MethodPut, mapsPath+"/a", configMap("a", "k", "2")).GetManagedFields())
	})
}

func TestMalformedWrites(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a"))
		b.refused(400, http.MethodPut, mapsPath+"/a", doc{"data": doc{"k": "v"}})
		b.refused(400, http.MethodPost, mapsPath, doc{"metadata": meta("b", "generation", "x")})
		b.refused(400, http.MethodGet, mapsPath+"?timeout=x", nil)
		b.refused(409, http.MethodPatch, mapsPath+"/none?fieldManager=m",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"none","uid":"u"}}`, "Content-Type", "application/apply-patch+yaml")
	})
}
