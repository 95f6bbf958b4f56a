package main

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
		".status.none":           nil,
		".status.phase.deeper":   nil,
		".status[0]":             nil,
		".spec.nothing":          nil,
		".spec.replicas":         {int64(3)},
		".spec.ports[1]":         {int64(443)},
		".spec.ports[2]":         nil,
		".spec.ports[3]":         nil,
		".spec.ports[-2]":        {int64(443)},
		".spec.ports[-4]":        nil,
		".spec.ports[*]":         {int64(80), int64(443)},
		".spec.ports[?(@==443)]": {int64(443)},
		".spec.containers[*].image": {
			"i", "j",
		},
		".spec.containers[0].*":                              {"c", "i"},
		`.metadata.labels.app\.kubernetes\.io/name`:          {"web"},
		".metadata.labels['app.kubernetes.io/name']":         {"web"},
		`.status.conditions[?(@.type=="Ready")].status`:      {"True"},
		`.status.conditions[?(@.type == 'Ready')].weight`:    {int64(7)},
		`.status.conditions[?(@['type']=="Ready" )].weight`:  {int64(7)},
		`.status.conditions[?(@.weight==7)].type`:            {"Ready"},
		`.status.conditions[?(@.type=='it\'s (so)')].status`: {"False"},
		`.status.conditions[?(@.type=="None")].status`:       nil,
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
	for text, want := range map[string]string{
		"":                           `path "" at byte 0: the path is empty`,
		"{}":                         `path "{}" at byte 1: the path is empty`,
		"$":                          `path "$" at byte 1: the path is empty`,
		"{.a":                        `path "{.a" at byte 3: the closing brace is missing`,
		".":                          `path "." at byte 1: a name is missing`,
		".a.":                        `path ".a." at byte 3: a name is missing`,
		"$a":                         `path "$a" at byte 1: a dot or a bracket is missing`,
		"a b":                        `path "a b" at byte 1: a dot or a bracket is missing`,
		"..a":                        `path "..a" at byte 2: descent to any depth is not supported`,
		".a[":                        `path ".a[" at byte 3: an index, a name in quotes, * or a filter is missing`,
		".a[x]":                      `path ".a[x]" at byte 3: an index, a name in quotes, * or a filter is missing`,
		".a[1":                       `path ".a[1" at byte 3: an index, a name in quotes, * or a filter is missing`,
		".a[1:2]":                    `path ".a[1:2]" at byte 3: an index, a name in quotes, * or a filter is missing`,
		".a[*":                       `path ".a[*" at byte 4: "]" is missing`,
		".a['b]":                     `path ".a['b]" at byte 3: the closing quote is missing`,
		".a['b'":                     `path ".a['b'" at byte 6: "]" is missing`,
		".a[?(b==1)]":                `path ".a[?(b==1)]" at byte 5: "@" is missing`,
		".a[?(@.b)]":                 `path ".a[?(@.b)]" at byte 8: a filter needs ==: "==" is missing`,
		".a[?(@.b!=1)]":              `path ".a[?(@.b!=1)]" at byte 9: a filter needs ==: "==" is missing`,
		".a[?(@.b==x)]":              `path ".a[?(@.b==x)]" at byte 10: a value to compare with is missing: a text in quotes, a number, true or false`,
		".a[?(@.b==1]":               `path ".a[?(@.b==1]" at byte 10: a value to compare with is missing: a text in quotes, a number, true or false`,
		".a[?(@.b=='1'":              `path ".a[?(@.b=='1'" at byte 13: ")]" is missing`,
		"{range .items[*]}{.a}{end}": `path "{range .items[*]}{.a}{end}" at byte 6: a dot or a bracket is missing`,
	} {
		_, err := parsePath(text)
		require.EqualError(t, err, want)
	}
}

func FuzzParsePath(f *testing.F) {
	for _, text := range []string{
		".status.phase", `{.status.conditions[?(@.type=="Ready")].status}`, ".a[-1]['b'].*", `$.a\.b[*]`, ".a[?(@[?(@.b==1)].c=='x')]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		require.NoError(t, err, "String returns a path that can be parsed")
		require.Equal(t, p.String(), again.String())
		require.Len(t, again.values(pathExample), len(p.values(pathExample)))
		require.NotContains(t, p.values(pathExample), nil)
	})
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
