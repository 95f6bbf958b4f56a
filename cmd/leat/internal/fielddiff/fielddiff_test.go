package fielddiff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/cmd/leat/internal/fielddiff"
)

// TestLines lists the lines of differences.
func TestLines(t *testing.T) {
	parse := func(text string) (o map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		return o
	}
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{`{"a":1,"b":"x","c":[1]}`, `{"a":2,"c":[1,2],"d":null}`, "~ a: 1 → 2\n- b: \"x\"\n+ c[1]: 2\n+ d: null"},
		{`{"a":{"example.com/x":"1"}}`, `{"a":{"example.com/x":"2"}}`, `~ a['example.com/x']: "1" → "2"`},
		{`{"c":[{"name":"a","v":1},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"a","v":2}]}`, "~ c[a].v: 1 → 2"},
		{`{"c":[{"type":"Ready","status":"False"}]}`, `{"c":[]}`, `- c[Ready]: {"status":"False","type":"Ready"}`},
		{`{"a":{"b":1}}`, `{"a":[1]}`, `~ a: {"b":1} → [1]`},
		{`{"metadata":{"managedFields":[1],"resourceVersion":"1"}}`, `{"metadata":{"managedFields":[2],"resourceVersion":"2"}}`, ""},
		{`{}`, `{"a":"` + strings.Repeat("x", 200) + `"}`, `+ a: "` + strings.Repeat("x", 118) + "…"},
	} {
		require.Equal(t, c.want, strings.Join(fielddiff.Lines(parse(c.before), parse(c.after)), "\n"))
	}
}
