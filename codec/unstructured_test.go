package codec_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

// requireSameContent decodes a document with sigs.k8s.io/json and as an unstructured object, and compares them.
func requireSameContent(t testing.TB, text string) {
	t.Helper()
	var want map[string]any
	wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
	got, err := unstructuredCodec.DecodeObject(context.Background(), strings.NewReader(text), asJSON, api.Resource{})
	if want["kind"] == "Status" {
		return // a different error
	}
	if wantErr != nil || want == nil {
		require.Error(t, err, "%.200q: sigs.k8s.io/json says %v", text, wantErr)
		return
	}
	require.NoError(t, err, "%.200q", text)
	require.Equal(t, want, got.Object, "%.200q", text)
}

func TestUnstructuredLikeReference(t *testing.T) {
	for _, text := range syntax {
		requireSameContent(t, text)
	}
	for _, number := range []string{
		"0", "-0", "1", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
		"1.0", "1e3", "1E3", "1.5", "123456789012345678901234567890", "1e308", "1e309", "-1e309", "1e-400", "0.1", "-0.0", "0e1",
	} {
		requireSameContent(t, `{"a":`+number+`,"b":[`+number+`]}`)
	}
	for _, typ := range kinds(t) {
		for seed := range uint64(3) {
			document := filled(t, typ, seed, 0.5)
			requireSameContent(t, string(document))
			var v any
			require.NoError(t, json.Unmarshal(document, &v))
			requireSameContent(t, string(mustJSON(mutate(rand.New(rand.NewPCG(seed, 2)), v))))
		}
	}
}

// The objects of a list share the names of members. A list with always new names is still decoded correctly.
func TestUnstructuredNamesAreInterned(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var items []any
	for range 300 {
		item := map[string]any{"metadata": map[string]any{"name": "a"}}
		for range 20 {
			item[strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(80))] = map[string]any{string(rune('a' + r.IntN(500))): "x"}
		}
		items = append(items, item)
	}
	decoded, _, err := collect(unstructuredCodec, string(mustJSON(map[string]any{"items": items})), asJSON, api.Resource{}, unstructuredOptions{})
	require.NoError(t, err)
	for i, item := range items {
		require.Equal(t, item, decoded[i].Object)
	}

	body := podList(50, asJSON)
	perPod := testing.AllocsPerRun(5, func() {
		must.Get(unstructuredCodec.DecodeList(context.Background(), strings.NewReader(string(body)), asJSON, pods, unstructuredOptions{}, discard))(t)
	}) / 50
	reference := testing.AllocsPerRun(5, func() {
		var m map[string]any
		require.NoError(t, sigsjson.UnmarshalCaseSensitivePreserveInts(mustJSON(newPod(1)), &m))
	})
	require.Less(t, perPod, reference*2/3)
}
