package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver"
)

const (
	shopPath     = "/api/v1/namespaces/shop"
	finalizePath = shopPath + "/finalize"
)

func namespaceOf(name string, finalizers ...any) doc {
	return doc{"metadata": doc{"name": name}, "spec": doc{"finalizers": finalizers}}
}

func TestNamespaceLifecycle(t *testing.T) {
	inBubble(t, testserver.Options{NamespaceLifecycle: true}, func(b *bench) {
		b.ok(http.MethodPost, "/api/v1/namespaces", namespaceOf("shop"))
		b.ok(http.MethodPost, shopPath+"/configmaps", doc{"metadata": doc{"name": "a"}})

		gone := b.ok(http.MethodDelete, shopPath+"?dryRun=All", nil)
		require.NotNil(t, gone.GetDeletionTimestamp())
		require.Nil(t, b.ok(http.MethodGet, shopPath, nil).GetDeletionTimestamp(), "a dry run marks only the answer")

		gone = b.ok(http.MethodDelete, shopPath, nil)
		require.NotNil(t, gone.GetDeletionTimestamp())
		require.Nil(t, gone.GetDeletionGracePeriodSeconds())
		require.Equal(t, doc{"phase": "Terminating"}, gone.Object["status"])
		require.Equal(t, doc{"finalizers": []any{"kubernetes"}}, gone.Object["spec"])
		again := b.ok(http.MethodDelete, shopPath, nil)
		require.Equal(t, gone.Object, again.Object, "a second deletion changes nothing")
		require.Equal(t, []string{"a"}, b.list(shopPath+"/configmaps").names(), "the contents stay")

		refused := b.refused(http.StatusForbidden, http.MethodPost, shopPath+"/configmaps", doc{"metadata": doc{"name": "b"}})
		require.Equal(t, `configmaps "b" is forbidden: unable to create new content in namespace shop because it is being terminated`, refused.Message)
		require.Equal(t, []metav1.StatusCause{{
			Type: "NamespaceTerminating", Message: "namespace shop is being terminated", Field: "metadata.namespace",
		}}, refused.Details.Causes)

		same := b.ok(http.MethodPut, shopPath, namespaceOf("shop"))
		require.Equal(t, doc{"finalizers": []any{"kubernetes"}}, same.Object["spec"], "only finalize changes them")

		b.ok(http.MethodPut, finalizePath, namespaceOf("shop"))
		b.refused(http.StatusNotFound, http.MethodGet, shopPath, nil)
	})
}

// TestFinalizedNamespaces removes the finalizers of the spec and of the metadata in both orders.
func TestFinalizedNamespaces(t *testing.T) {
	inBubble(t, testserver.Options{NamespaceLifecycle: true}, func(b *bench) {
		held := namespaceOf("shop")
		held["metadata"].(doc)["finalizers"] = []any{"leat.example/f"}
		release := doc{"metadata": doc{"finalizers": nil}}
		patch := func() answer {
			return b.do(http.MethodPatch, shopPath, release, "Content-Type", "application/merge-patch+json")
		}

		b.ok(http.MethodPost, "/api/v1/namespaces", held)
		b.ok(http.MethodDelete, shopPath, nil)
		require.Equal(t, http.StatusOK, b.do(http.MethodPut, finalizePath, held).code)
		require.Nil(t, b.ok(http.MethodGet, shopPath, nil).Object["spec"].(doc)["finalizers"], "the metadata hold it")
		require.Equal(t, http.StatusOK, patch().code)
		b.refused(http.StatusNotFound, http.MethodGet, shopPath, nil)

		b.ok(http.MethodPost, "/api/v1/namespaces", held)
		b.ok(http.MethodDelete, shopPath, nil)
		require.Equal(t, http.StatusOK, patch().code)
		b.ok(http.MethodGet, shopPath, nil)
		b.ok(http.MethodPut, finalizePath, namespaceOf("shop"))
		b.refused(http.StatusNotFound, http.MethodGet, shopPath, nil)

		// A namespace whose finalizers are removed before its deletion is deleted at once.
		b.ok(http.MethodPost, "/api/v1/namespaces", namespaceOf("shop"))
		b.ok(http.MethodPut, finalizePath, namespaceOf("shop"))
		b.ok(http.MethodDelete, shopPath, nil)
		b.ok(http.MethodGet, shopPath, nil)
		b.ok(http.MethodDelete, shopPath, nil)
		b.refused(http.StatusNotFound, http.MethodGet, shopPath, nil)
	})
}

// TestPopulatedNamespaceStays changes a namespace that the server deletes by itself, while an object is left in it.
func TestPopulatedNamespaceStays(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, "/api/v1/namespaces", namespaceOf("shop"))
		b.ok(http.MethodPost, shopPath+"/configmaps", doc{"metadata": doc{"name": "a", "finalizers": []any{"leat.example/f"}}})
		b.ok(http.MethodDelete, shopPath, nil)
		b.ok(http.MethodPatch, shopPath, doc{"metadata": doc{"labels": doc{"a": "b"}}}, "Content-Type", "application/merge-patch+json")
		b.ok(http.MethodGet, shopPath, nil)
		b.ok(http.MethodPatch, shopPath+"/configmaps/a", doc{"metadata": doc{"finalizers": nil}}, "Content-Type", "application/merge-patch+json")
		b.refused(http.StatusNotFound, http.MethodGet, shopPath, nil)
	})
}

func TestFinalizeIsDiscovered(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		var found []doc
		for _, r := range b.ok(http.MethodGet, "/api/v1", nil).Object["resources"].([]any) {
			if r := r.(doc); r["name"] == "namespaces/finalize" {
				found = append(found, r)
			}
		}
		require.Len(t, found, 1)
		require.Equal(t, []any{"update"}, found[0]["verbs"])
		b.refused(http.StatusMethodNotAllowed, http.MethodGet, "/api/v1/namespaces/default/finalize", nil)
		b.refused(http.StatusMethodNotAllowed, http.MethodDelete, "/api/v1/namespaces", nil)
		for _, name := range []string{"default", "kube-system", "kube-public"} {
			refused := b.refused(http.StatusForbidden, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
			require.Equal(t, `namespaces "`+name+`" is forbidden: this namespace may not be deleted`, refused.Message)
		}
	})
}
