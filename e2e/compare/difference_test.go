package compare_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/compare"
)

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestCompareFindsDifferences(t *testing.T) {
	for _, c := range []struct {
		name       string
		have, want compare.Answer
		aspects    []string
	}{
		{"equal", compare.Answer{Status: 200, Text: "a"}, compare.Answer{Status: 200, Text: "a"}, nil},
		{"status", compare.Answer{Status: 404, Text: "a"}, compare.Answer{Status: 200, Text: "b"}, []string{"404-not-200"}},
		{
			"exit code",
			compare.Answer{Command: true, Status: 1},
			compare.Answer{Command: true, Errors: "x"},
			[]string{"exit-1-not-0"},
		},
		{
			"headers",
			compare.Answer{Header: map[string]string{"Warning": "a", "X-Other": "a"}},
			compare.Answer{Header: map[string]string{"Allow": "b"}},
			[]string{"Allow", "Warning"},
		},
		{"body", compare.Answer{Text: "a\nb"}, compare.Answer{Text: "a\nc"}, []string{"body"}},
		{
			"outputs",
			compare.Answer{Command: true, Text: "a", Errors: "b"},
			compare.Answer{Command: true, Text: "b", Errors: "a"},
			[]string{"stderr", "stdout"},
		},
		{"form", compare.Answer{Text: "{}"}, compare.Answer{Value: map[string]any{}}, []string{"form"}},
		{"connection", compare.Answer{Failure: "EOF"}, compare.Answer{Status: 200}, []string{"connection"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.aspects, compare.Aspects(compare.Compare(&c.have, &c.want)))
		})
	}
}

func TestCompareFindsFields(t *testing.T) {
	for _, c := range []struct{ name, have, want, aspects string }{
		{"equal", `{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[1,{"c":2}]}}`, ""},
		{"missing", `{}`, `{"a":1}`, ".a"},
		{"more", `{"a":1,"b":2}`, `{"a":1}`, ".b"},
		{"null is a value", `{"a":null}`, `{}`, ".a"},
		{"types", `{"a":"1"}`, `{"a":1}`, ".a"},
		{"two names", `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, ".a.b"},
		{"a name with dots", `{"a":{"b.c/d":1}}`, `{"a":{"b.c/d":2}}`, ".a[b.c/d]"},
		{"items of lists", `{"items":[{"spec":{"a":1}}]}`, `{"items":[{"spec":{"a":2}}]}`, ".spec.a"},
		{"objects of watches", `[{"object":{"spec":{"a":1}}}]`, `[{"object":{"spec":{"a":2}}}]`, ".spec.a"},
		{"events", `[{"type":"ADDED"}]`, `[{"type":"ADDED"},{"type":"BOOKMARK"}]`, "items"},
		{"fewer events", `[{"type":"ADDED"},{"type":"BOOKMARK"}]`, `[{"type":"ADDED"}]`, "items"},
		{"named items", `{"l":[{"name":"b","x":1},{"name":"c"}]}`, `{"l":[{"name":"a"},{"name":"b","x":2}]}`, ".l .l.x"},
		{"order", `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b"},{"name":"a"}]}`, "order"},
		{"names twice", `{"l":[{"name":"a"},{"name":"a"}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, ".l.name"},
		{"texts", `{"l":["a","c"]}`, `{"l":["a","b","c"]}`, ".l"},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := compare.Answer{Value: value(t, c.have)}, compare.Answer{Value: value(t, c.want)}
			require.Equal(t, c.aspects, strings.Join(compare.Aspects(compare.Compare(&have, &want)), " "))
		})
	}
}

func TestReport(t *testing.T) {
	have := compare.Answer{Value: value(t, `{"a":1,"b":2}`)}
	want := compare.Answer{Value: value(t, `{"b":3}`), Text: "x\ny"}
	require.Equal(t, "  .a: have 1, want nothing\n  .b: have 2, want 3\n  body\n    have \n    want x\n    want y",
		compare.Report(compare.Compare(&have, &want)))
	long := compare.Answer{Text: strings.Repeat("line\n", 100)}
	for i := range 100 {
		long.Text += string(rune('a'+i)) + "\n"
	}
	require.Contains(t, compare.Report(compare.Compare(&compare.Answer{}, &long)), "lines more")
}
