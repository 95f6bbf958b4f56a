package testserver_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

const asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"

func TestTables(t *testing.T) {
	for _, place := range []struct {
		path   string
		object func(name string) doc
	}{
		{podsPath, func(name string) doc { return pod(name) }},
		{millsPath, func(name string) doc { return custom("Mill", name) }},
	} {
		inBubble(t, testserver.Options{}, func(b *bench) {
			b.Register(mills)
			table := func(path string) metav1.Table {
				a := b.do(http.MethodGet, path, nil, "Accept", asTable)
				require.Equal(b, 200, a.code, "%s", a.body)
				var table metav1.Table
				require.NoError(b, json.Unmarshal(a.body, &table))
				require.Equal(b, "Table", table.Kind)
				require.Equal(b, "meta.k8s.io/v1", table.APIVersion)
				require.Equal(b, []string{"Name", "Age"}, []string{table.ColumnDefinitions[0].Name, table.ColumnDefinitions[1].Name})
				return table
			}
			require.Empty(b, table(place.path).Rows)
			b.ok(http.MethodPost, place.path, place.object("a"))
			<-time.After(90 * time.Second)
			b.ok(http.MethodPost, place.path, place.object("b"))

			all := table(place.path)
			require.Equal(b, "102", all.ResourceVersion)
			require.Equal(b, []any{"a", "90s"}, all.Rows[0].Cells)
			require.Equal(b, []any{"b", "0s"}, all.Rows[1].Cells)
			require.Contains(b, string(all.Rows[0].Object.Raw), `"kind":"PartialObjectMetadata"`)

			first := table(place.path + "?limit=1&includeObject=Object")
			require.Len(b, first.Rows, 1)
			require.NotEmpty(b, first.Continue)
			require.NotContains(b, string(first.Rows[0].Object.Raw), "PartialObjectMetadata")
			require.Equal(b, []any{"b", "0s"}, table(place.path + "?limit=1&continue=" + first.Continue).Rows[0].Cells)

			one := table(place.path + "/a?includeObject=None")
			require.Equal(b, "101", one.ResourceVersion)
			require.Equal(b, []any{"a", "90s"}, one.Rows[0].Cells)
			require.Nil(b, one.Rows[0].Object.Raw)

			b.refused(400, http.MethodGet, place.path+"?includeObject=Some", nil, "Accept", asTable)
			b.refused(404, http.MethodGet, place.path+"/zz", nil, "Accept", asTable)
		})
	}
}

func TestWatchesOfTablesHaveTheColumnsOnce(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, podsPath, pod("a"))
		s := b.watchAs(asTable, podsPath, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
		first := must.Get(s.next())(b)
		require.Len(b, first.Object["columnDefinitions"], 2)
		bookmark := must.Get(s.next())(b)
		require.Equal(b, "BOOKMARK", bookmark.Type)
		require.Equal(b, "Table", bookmark.Object["kind"])
		row := bookmark.Object["rows"].([]any)[0].(doc)
		require.Equal(b, []any{"", "<unknown>"}, row["cells"])
		annotations := row["object"].(doc)["metadata"].(doc)["annotations"]
		require.Equal(b, doc{metav1.InitialEventsAnnotationKey: "true"}, annotations)
		b.ok(http.MethodPost, podsPath, pod("b"))
		second := must.Get(s.next())(b)
		require.Nil(b, second.Object["columnDefinitions"])
		require.Equal(b, []any{"b", "0s"}, second.Object["rows"].([]any)[0].(doc)["cells"])
	})
}
