package goal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var pathExample = map[string]any{
	"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "web", "a": "b"}, "generation": int64(3)},
	"spec": map[string]any{
		"replicas": int64(3), "ratio": 0.5, "paused": false, "nothing": nil, "ports": []any{int64(80), int64(443), nil},
		"containers": []any{
			map[string]any{"name": "c", "image": "i"},
			map[string]any{"name": "d", "image": "j", "stdin": true},
		},
	},
	"status": map[string]any{"phase": "Running", "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "weight": int64(7)},
		map[string]any{"type": "it's (so)", "status": "False"},
	}},
}

func TestPath(t *testing.T) {
	for text, want := range map[string][]any{
		".status.phase":          {"Running"},
		"{.status.phase}":        {"Running"},
		"$.status.phase":         {"Running"},
		"{$.status.phase}":       {"Running"},
		"status.phase":           {"Running"},
		"['status']['phase']":    {"Running"},
		`{["status"].phase}`:     {"Running"},
		".status.none":           {},
		".status.phase.deeper":   {},
		".status[0]":             {},
		".spec.nothing":          {},
		".spec.replicas":         {int64(3)},
		".spec.ports[1]":         {int64(443)},
		".spec.ports[2]":         {},
		".spec.ports[3]":         {},
		".spec.ports[-2]":        {int64(443)},
		".spec.ports[-4]":        {},
		".spec.ports[*]":         {int64(80), int64(443)},
		".spec.ports[?(@==443)]": {int64(443)},
		".spec.containers[*].image": {
			"i", "j",
		},
		".spec.containers[0].*":                              {"c", "i"},
		".metadata.labels['app.kubernetes.io/name']":         {"web"},
		`.status.conditions[?(@.type=="Ready")].status`:      {"True"},
		`.status.conditions[?(@['type']=="Ready" )].weight`:  {int64(7)},
		`.status.conditions[?(@.weight==7)].type`:            {"Ready"},
		`.status.conditions[?(@.type=='it\'s (so)')].status`: {"False"},
		`.status.conditions[?(@.type=="None")].status`:       {},
		`.spec.containers[?(@.stdin==true)].name`:            {"d"},
	} {
		p, err := parsePath(text)
		require.NoError(t, err, text)
		if text == ".spec.containers[0].*" {
			require.ElementsMatch(t, want, p.values(pathExample), text)
			continue
		}
		require.Equal(t, want, p.values(pathExample), text)
	}
	p, err := parsePath("$.status.phase")
	require.NoError(t, err)
	require.Equal(t, "{$.status.phase}", p.String())
}

func TestParsePathErrors(t *testing.T) {
	const hint = " (a name with dots or dashes is in brackets: ['a.b'])"
	for text, want := range map[string]string{
		"":             `path "", in RFC 9535 "$": the path is empty` + hint,
		"{}":           `path "{}", in RFC 9535 "$": the path is empty` + hint,
		"$":            `path "$", in RFC 9535 "$": the path is empty` + hint,
		"{.a":          `path "{.a": the closing brace is missing`,
		".a[":          `path ".a[", in RFC 9535 "$.a[": jsonpath: unexpected eof at position 5` + hint,
		`.a\.b`:        `path ".a\\.b", in RFC 9535 "$.a\\.b": jsonpath: unexpected '\\' at position 4` + hint,
		".a[?(@.b=x)]": `path ".a[?(@.b=x)]", in RFC 9535 "$.a[?(@.b=x)]": jsonpath: invalid comparison operator at position 10` + hint,
	} {
		_, err := parsePath(text)
		require.EqualError(t, err, want)
	}
}

func TestFields(t *testing.T) {
	object := &unstructured.Unstructured{Object: pathExample}
	for _, tt := range []struct {
		path, value string
		want        bool
	}{
		{".status.phase", "Running", true},
		{".status.phase", "running", false},
		{".status.none", "", false},
		{".spec.replicas", "3", true},
		{".spec.ratio", "0.5", true},
		{".spec.paused", "false", true},
		{".spec.containers[*].name", "c", false},
		{".spec.ports[?(@==80)]", "80", true},
	} {
		met, err := hasValue(parsedPath(t, tt.path), tt.value).Met(object, true)
		require.NoError(t, err)
		require.Equal(t, tt.want, met, "%s=%s", tt.path, tt.value)
	}
	for path, want := range map[string]string{
		".spec":       "{.spec} leads to an object; only a plain value can be compared",
		".spec.ports": "{.spec.ports} leads to a list; only a plain value can be compared",
	} {
		_, err := hasValue(parsedPath(t, path), "x").Met(object, true)
		require.EqualError(t, err, want)
	}
	for path, want := range map[string]bool{".spec": true, ".spec.ports": true, ".spec.paused": true, ".spec.nothing": false, ".spec.none": false} {
		met, err := hasField(parsedPath(t, path)).Met(object, true)
		require.NoError(t, err)
		require.Equal(t, want, met, path)
		met, err = hasField(parsedPath(t, path)).Met(nil, false)
		require.NoError(t, err)
		require.False(t, met)
	}
	require.Equal(t, `{.spec.containers[*].name} is "c", "d"`, hasField(parsedPath(t, ".spec.containers[*].name")).State(object))
}

func TestStatesOfFieldsAreShort(t *testing.T) {
	values := make([]any, 30)
	for i := range values {
		values[i] = strings.Repeat("v", 1000)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"list": values}}
	state := hasField(parsedPath(t, ".list[*]")).State(object)
	require.True(t, strings.HasSuffix(state, "v… and 20 more"), state)
	require.Less(t, len(state), 1400)
}

func parsedPath(t *testing.T, text string) jsonPath {
	t.Helper()
	p, err := parsePath(text)
	require.NoError(t, err)
	return p
}
