package apiclient_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

func TestTables(t *testing.T) {
	withServer(t, testserver.Options{}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		for _, name := range []string{"a", "b"} {
			must.Get(s.Create(podResource, newPod(name)))(t)
		}
		tables := apiclient.TablesOf(c, podResource, "default")
		first := must.Get(tables.List(t.Context(), metav1.ListOptions{Limit: 1}, ""))(t)
		require.Equal(t, "Name", first.ColumnDefinitions[0].Name)
		require.Len(t, first.Rows, 1)
		require.Equal(t, "a", first.Rows[0].Cells[0])
		var object metav1.PartialObjectMetadata
		require.NoError(t, json.Unmarshal(first.Rows[0].Object.Raw, &object))
		require.Equal(t, "a", object.Name)

		second := must.Get(tables.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue}, metav1.IncludeNone))(t)
		require.Equal(t, "b", second.Rows[0].Cells[0])
		require.Nil(t, second.Rows[0].Object.Raw)

		one := must.Get(tables.Get(t.Context(), api.Key{Name: "b"}, metav1.GetOptions{}, metav1.IncludeObject))(t)
		require.Contains(t, string(one.Rows[0].Object.Raw), `"containers"`)
		_, err := tables.Get(t.Context(), api.Key{Name: "c"}, metav1.GetOptions{}, "")
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, "get pods default/c: ")
		require.NotErrorIs(t, err, apiclient.ErrNoTable)
	})
}

func TestTablesOnTheWire(t *testing.T) {
	var got recorded
	cfg := onLoopback(t, recorder(&got, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[]}`))
	tables := apiclient.TablesOf(newClient(t, cfg), deployments, "")
	must.Get(tables.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b", Watch: true}, metav1.IncludeObject))(t)
	require.Equal(t, "/apis/apps/v1/deployments", got.Path)
	require.Equal(t, "includeObject=Object&labelSelector=a%3Db", got.Query.Encode())
	require.Equal(t, "application/json;as=Table;g=meta.k8s.io;v=v1", got.Header.Get("Accept"))
}

func TestServersWithoutTables(t *testing.T) {
	tables := apiclient.TablesOf(newClient(t, onLoopback(t, answer(200, jsonType, onePodList))), podResource, "")
	_, err := tables.List(t.Context(), metav1.ListOptions{}, "")
	require.ErrorIs(t, err, apiclient.ErrNoTable)
	require.ErrorIs(t, err, codec.ErrUnexpectedKind)
	require.ErrorContains(t, err, "list pods: ")

	tables = apiclient.TablesOf(newClient(t, onLoopback(t, answer(406, "text/plain", "no"))), podResource, "")
	_, err = tables.List(t.Context(), metav1.ListOptions{}, "")
	require.ErrorIs(t, err, apiclient.ErrNoTable)
	require.True(t, apierrors.IsNotAcceptable(err))
}
