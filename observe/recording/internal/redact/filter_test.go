package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// redacted passes a text through a filter, in pieces of n bytes.
func redacted(t testing.TB, text string, n int, paths ...string) (string, error) {
	t.Helper()
	var all []Path
	for _, p := range paths {
		all = append(all, Path{"things", p})
	}
	compiled := must.Get(Compile(all))(t)
	f := NewFilter(compiled.Of("things"), hmac.New(sha256.New, []byte("key")))
	var out strings.Builder
	for text != "" {
		n := min(n, len(text))
		piece, err := f.Copy([]byte(text[:n]))
		out.Write(piece)
		if err != nil {
			return out.String(), err
		}
		text = text[n:]
	}
	return out.String(), nil
}

// TestFilter lists what the filter makes of objects. H stands for a hash.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		path     string
		in, want string
	}{
		{"data", `{"type":"ADDED","object":{"data":{"a":"x","b":["y",{"c":"z"}]},"kept":"x"}}`, `{"type":"ADDED","object":{"data":{"a":H,"b":[H,{"c":H}]},"kept":"x"}}`},
		{"data", `{"type":"ADDED","data":"outside"}` + "\n" + `{"object":{"data":"in"}}`, `{"type":"ADDED","data":H}` + "\n" + `{"object":{"data":H}}`},
		{"d.*.x", `{"object":{"d":{"a":{"x":"1","y":"2"},"b":{"x":"3"}}}}`, `{"object":{"d":{"a":{"x":H,"y":"2"},"b":{"x":H}}}}`},
		{"l[*].v", `{"object":{"l":[{"v":"1","n":"a"},{"v":"2"}]}}`, `{"object":{"l":[{"v":H,"n":"a"},{"v":H}]}}`},
		{"data", `{"object":{"d\u0061ta":"x"}}`, `{"object":{"d\u0061ta":H}}`},
		{"data", `{"object":{"DATA":"x","Data":{"a":"y"},"date":"z"}}`, `{"object":{"DATA":H,"Data":{"a":H},"date":"z"}}`},
		{"data", `{"object":{"Metadata":{"ManagedFields":[1],"Name":"x"}}}`, `{"object":{"Metadata":{"ManagedFields":null,"Name":"x"}}}`},
		{"data", `{"kind":["a"],"metadata":{"continue":"c","name":"n"},"Items":[{"kind":"k","x":"y"}],"items":null}`, `{"kind":[H],"metadata":{"continue":"c","name":H},"Items":[{"kind":"k","x":H}],"items":null}`},
		{"data", `{"object":{"rows":"a","x":1}}`, `{"object":{"rows":"a","x":1}}`},
		{"data", `{"object":{"data":"with \" and \\"}}`, `{"object":{"data":H}}`},
		{"data", `{"object":{"data":[null,true,false]}}`, `{"object":{"data":[null,false,false]}}`},
		{"data", `{"object":{"data":{},"more":[]}}`, `{"object":{"data":{},"more":[]}}`},
		{"data", `{"object":{"metadata":{"managedFields":[{"a":{"b":["}"]}}],"name":"n"}}}`, `{"object":{"metadata":{"managedFields":null,"name":"n"}}}`},
		{"data", `{"object":{"metadata":{"managedFields":"x","name":1}}}`, `{"object":{"metadata":{"managedFields":null,"name":1}}}`},
		{"data", `{"object":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","b":"c"}}}}`, `{"object":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":H,"b":"c"}}}}`},
		{"metadata", `{"object":{"metadata":{"name":"n","labels":{"name":"l"},"annotations":{"k8s.io/initial-events-end":"true"}}}}`, `{"object":{"metadata":{"name":"n","labels":{"name":H},"annotations":{"k8s.io/initial-events-end":"true"}}}}`},
		{"metadata", `{"object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"secret"}}}}`, `{"object":{"metadata":{"annotations":{"k8s.io/initial-events-end":H}}}}`},
		{"data", `{"kind":"List", "items":[ {"data":"a"} , {"data":"b","x":"c"}],"data":"d"}`, `{"kind":"List", "items":[ {"data":H} , {"data":H,"x":"c"}],"data":H}`},
		{"data", `{"rows":[{"cells":["a",true,null],"object":{"data":"b"}}],"c":"d"}`, `{"rows":[{"cells":[H,false,null],"object":{"data":H}}],"c":H}`},
		{"data", `{"type":"ADDED","object":{"rows":[{"cells":["a"],"object":{"data":"b","x":"c"}}]}}`, `{"type":"ADDED","object":{"rows":[{"cells":[H],"object":{"data":H,"x":"c"}}]}}`},
		{"data", `{"items":[{"data":"a"}]}` + "\n" + `{"object":{"data":"b"}}`, `{"items":[{"data":H}]}` + "\n" + `{"object":{"data":H}}`},
		{"*", `{"object":{"kind":"k","rows":[{"object":{"kind":"a","metadata":{"name":"b"}}}]}}`, `{"object":{"kind":"k","rows":[{"object":{"kind":H,"metadata":{"name":H}}}]}}`},
		{"*", `{"items":[{"kind":{"a":"b"},"apiVersion":["c"],"metadata":{"name":{"d":["e"]},"uid":"u"}}]}`, `{"items":[{"kind":{"a":H},"apiVersion":[H],"metadata":{"name":{"d":[H]},"uid":"u"}}]}`},
	} {
		for n := 1; n <= len(c.in); n++ {
			got, err := redacted(t, c.in, n, c.path)
			require.NoError(t, err, c.in)
			for strings.Contains(got, `"`+Mark) {
				at := strings.Index(got, `"`+Mark)
				got = got[:at] + "H" + got[at+2+28:]
			}
			require.Equal(t, c.want, got)
		}
	}
	got := must.Get(redacted(t, `{"object":{"data":[12,-3.5e7,12]}}`, 5, "data"))(t)
	var numbers struct{ Object struct{ Data []uint32 } }
	require.NoError(t, json.Unmarshal([]byte(got), &numbers))
	require.Equal(t, numbers.Object.Data[0], numbers.Object.Data[2])
	require.NotEqual(t, numbers.Object.Data[0], numbers.Object.Data[1])
	require.NotEqual(t, uint32(12), numbers.Object.Data[0])
}

// TestFilterRefuses what is not JSON, or neither a list nor a watch, because it cannot know where the values are.
func TestFilterRefuses(t *testing.T) {
	for _, text := range []string{
		`}`, `{"a":}`, `{a:1}`, `{"a" 1}`, `[1 2]`, `{"a":1]`, `<html>`, strings.Repeat("[", maxDepth+1),
		`[]`, `"text"`, `text`, `7 `, `null `, `{"items":{"a":1}}`, `{"items":"a"}`, `{"items":["a"]}`, `{"items":[[{}]]}`, `{"object":[{}]}`, `{"object":"a"}`,
		`{"rows":{}}`, `{"kind":word,`, `{"object":{"x":word}}`, `{"object":{"data":word}}`, `{"object":{"x":1e}}`, `{"object":nothing,`,
	} {
		require.ErrorIs(t, must.Err(redacted(t, text, 3, "data")), errForm, text)
	}
}

// FuzzFilter filters any JSON. The result is JSON with the same names, does not depend on the pieces, and has no text
// of a redacted path.
func FuzzFilter(f *testing.F) {
	f.Add(`{"object":{"data":{"a":"needle"},"b":[1,2,"c"]}}`, 3)
	f.Add(`{"object":{"data":"needle\\\" \u0041"}}{"object":null}`, 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(1, min(n, 100))
		whole, err := redacted(t, text, len(text)+1, "*")
		parts, errParts := redacted(t, text, n, "*")
		require.Equal(t, err, errParts)
		if err != nil || !json.Valid([]byte(text)) {
			return
		}
		require.Equal(t, whole, parts)
		require.True(t, json.Valid([]byte(whole)), "%q became %q", text, whole)
		var frame map[string]any
		if json.Unmarshal([]byte(whole), &frame) == nil {
			if object, ok := frame["object"].(map[string]any); ok {
				for _, name := range []string{"metadata", "kind", "apiVersion"} { // have parts that stay
					delete(object, name)
				}
				requireHashed(t, object)
			}
		}
	})
}

func requireHashed(t *testing.T, v any) {
	switch v := v.(type) {
	case string:
		require.True(t, strings.HasPrefix(v, Mark), "%q", v)
	case bool:
		require.False(t, v)
	case map[string]any:
		for _, below := range v {
			requireHashed(t, below)
		}
	case []any:
		for _, below := range v {
			requireHashed(t, below)
		}
	}
}

// TestRedactionWithoutAGroup is that of the resources of all groups. Secrets have their known form too.
func TestRedactionWithoutAGroup(t *testing.T) {
	compiled := must.Get(Compile([]Path{{"deployments", "spec"}, {"jobs.batch", "spec"}}))(t)
	for resource, want := range map[string]int{
		"deployments": 1, "deployments.apps": 1, "jobs.batch": 1, "jobs": 0, "jobs.example.com": 0, "secrets": 2, "pods": 0,
	} {
		require.Len(t, compiled.Of(resource), want, resource)
	}
}
