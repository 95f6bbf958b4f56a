package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/object"
)

// causesOf returns the fields of the causes in an answer.
func causesOf(answer object.Tree) (fields []string) {
	for _, c := range object.SliceAt(object.MapAt(answer, "details"), "causes") {
		fields = append(fields, object.StringAt(c.(object.Tree), "field"))
	}
	return fields
}

// TestEqualRequestsGetCausesInTheSameOrder sends requests with many errors in maps. Without an order, each answer would
// be another one of many. Causes outside of maps keep the order of Kubernetes.
func TestEqualRequestsGetCausesInTheSameOrder(t *testing.T) {
	const (
		maps  = "/api/v1/namespaces/default/configmaps"
		pods  = "/api/v1/namespaces/default/pods"
		wrong = `"labels":{"z z":"1","a a":"2","m m":"3","k":"! !","b":"? ?"},"annotations":{"y y":"","c c":"","n n":""}`
	)
	inBubble(t, func(b bubble) {
		b.must("POST", maps, `{"metadata":{"name":"a"}}`)
		for _, tc := range []struct {
			method, path, body string
			fields             []string
		}{
			{"POST", maps, `{"metadata":{"name":"b"},"data":{"z!":"","a!":"","m!":"","..":""}}`, []string{"data[..]", "data[a!]", "data[m!]", "data[z!]"}},
			{
				"POST", maps, `{"metadata":{"name":"B_",` + wrong + `,"finalizers":["z","a"]}}`, []string{
					"metadata.name", "metadata.labels", "metadata.labels", "metadata.labels", "metadata.labels", "metadata.labels",
					"metadata.annotations", "metadata.annotations", "metadata.annotations", "metadata.finalizers[0]", "metadata.finalizers[1]",
				},
			},
			{
				"PUT", maps + "/a", `{"metadata":{"name":"a",` + wrong + `}}`, []string{
					"metadata.labels", "metadata.labels", "metadata.labels", "metadata.labels", "metadata.labels",
					"metadata.annotations", "metadata.annotations", "metadata.annotations",
				},
			},
			{
				"POST", pods, `{"metadata":{"name":"p"},"spec":{"nodeSelector":{"z z":"","a a":""},"containers":[
					{"name":"z z","image":"i","resources":{"limits":{"z":"1","a":"1","m":"1"}}},{"name":"c"}]}}`,
				nil,
			},
		} {
			code, first := b.send(tc.method, tc.path, tc.body)
			require.Equal(t, 422, code, "%v", first)
			if tc.fields != nil {
				require.Equal(t, tc.fields, causesOf(first))
			}
			for range 20 {
				_, again := b.send(tc.method, tc.path, tc.body)
				require.Equal(t, first, again)
			}
		}
	})
}
