package testserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// TestALargeListDoesNotStopWriters lists many objects while the test holds the lock of the writers. A list that took
// the lock after it has its version would never end, whatever its length.
func TestALargeListDoesNotStopWriters(t *testing.T) {
	const objects = 10_000
	s := New(Options{})
	maps := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	for i := range objects {
		_, err := s.Create(maps, object.Tree{"metadata": object.Tree{"name": fmt.Sprint("m", i), "namespace": "default", "labels": object.Tree{"a": "b"}}})
		require.NoError(t, err)
	}
	c, d, ok := s.store.Find("", "v1", "configmaps")
	require.True(t, ok)
	for _, o := range []metav1.ListOptions{{}, {LabelSelector: "a=b"}, {ResourceVersion: "0"}, {Limit: 9_000}} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/configmaps", nil)
		x := &call{
			Server: s, w: w, http: r, c: c, def: d, plan: &s.plan, media: wire.Media{Type: wire.JSON},
			request: Request{Verb: "list", Version: "v1", Resource: "configmaps", Query: url.Values{}},
		}
		p, err := x.page(o)
		require.NoError(t, err)
		p.Selection, err = store.NewSelection(d, "v1", "", o.LabelSelector, "")
		require.NoError(t, err)
		s.store.Lock()
		err = x.writeList(p)
		s.store.Unlock()
		require.NoError(t, err)
		want := objects
		if o.Limit > 0 {
			want = int(o.Limit)
		}
		require.Equal(t, want, strings.Count(w.Body.String(), `{"metadata":{"name":"m`))
	}
}
