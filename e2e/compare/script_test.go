package compare_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/compare"
)

func TestParseArea(t *testing.T) {
	a, err := compare.ParseArea("verbs", `# What it is about,
# in two lines.

== one
# A comment.
-- create
# Another comment.
@user restricted
@until 201 some text
@fill 5
@protobuf
@meanwhile
POST /api/v1/a b
Accept: text/plain
X: y: z

{"a":
"b"}

-- get
GET /
== two
-- list
$ kubectl get a -o 'b c' "" d"e"f
input
`)
	require.NoError(t, err)
	require.Equal(t, "What it is about, in two lines.", a.About)
	require.Len(t, a.Scenarios, 2)
	require.Equal(t, "verbs-one", a.Scenarios[0].Namespace())
	create, get, list := a.Scenarios[0].Steps[0], a.Scenarios[0].Steps[1], a.Scenarios[1].Steps[0]
	require.Equal(t, "verbs/one/create", create.ID)
	require.Equal(t, "POST", create.Method)
	require.Equal(t, "/api/v1/a b", create.Path)
	require.Equal(t, "y: z", create.Header.Get("X"))
	require.Equal(t, "{\"a\":\n\"b\"}", create.Body)
	require.Equal(t, "restricted", create.User)
	require.Equal(t, 201, create.Until)
	require.Equal(t, "some text", create.Contains)
	require.Equal(t, 5, create.Fill)
	require.True(t, create.Protobuf)
	require.True(t, create.Meanwhile)
	require.Equal(t, "admin", get.User)
	require.Empty(t, get.Body)
	require.Equal(t, []string{"get", "a", "-o", "b c", "", "def"}, list.Args)
	require.Equal(t, "input", list.Body)
}

func TestParseAreaRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"GET /":                                        "a request needs a scenario",
		"-- a\nGET /":                                  "before the first scenario",
		"== A":                                         "not a name for a scenario",
		"== " + strings.Repeat("a", 50):                "not a name for a scenario",
		"== a\n-- A b\nGET /":                          "not a name for a step",
		"== a\nGET /":                                  "a request needs a name",
		"== a\n-- b\nGET /\n-- b\nGET /":               "two steps a/a/b",
		"== a\n-- b\nGET /\n== a\n-- b\nGET /":         "two scenarios a/a",
		"== a\n-- b":                                   "there is no request",
		"== a\n-- b\nGET nothing":                      "is not METHOD /path",
		"== a\n-- b\nGET /\nbody":                      "is not a header",
		"== a\n-- b\n@user me\nGET /":                  "there is no user",
		"== a\n-- b\n@until soon\nGET /":               "invalid syntax",
		"== a\n-- b\n@fly\nGET /":                      "unknown directive @fly",
		"== a\n-- b\n$ kubectl get 'a":                 "do not end",
		"== a\n-- b\nGET /\n\n== c\n-- d\nGET\n== e\n": "is not METHOD /path",
	} {
		_, err := compare.ParseArea("a", text)
		require.ErrorContains(t, err, want, text)
	}
}
