package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func masked(t *testing.T, m *mask, text string) string {
	t.Helper()
	v, err := readJSON([]byte(text), false)
	require.NoError(t, err)
	return show(m.answer(&Answer{Value: v}).Value)
}

// TestMaskKeepsIdentity masks the answers of two servers. What is the same object, version or UID has the same name on
// both, and what is another one has another name.
func TestMaskKeepsIdentity(t *testing.T) {
	run := func(uid, other string, version int) []string {
		m := newMask("https://127.0.0.1:"+uid[:4], "/folder/of-"+uid[:4])
		m.learnPrefixes(`{"metadata":{"generateName":"g-"}}`)
		object := func(uid string, version int) string {
			return `{"metadata":{"name":"a","uid":"` + uid + `","resourceVersion":"` + show(version) + `"}}`
		}
		return []string{
			masked(t, m, object(uid, version)),
			masked(t, m, object(uid, version)),
			masked(t, m, object(uid, version+3)),
			masked(t, m, object(other, version+9)),
			masked(t, m, `{"metadata":{"resourceVersion":"`+show(version+9)+`"},"message":"UID `+uid+`"}`),
			masked(t, m, `{"metadata":{"name":"g-`+uid[:5]+`","generateName":"g-"}}`),
			m.text("configmap/g-" + uid[:5] + " and g-" + other[:5]),
			m.text("at 127.0.0.1:" + uid[:4] + " in /folder/of-" + uid[:4]),
		}
	}
	const a, b = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	first, second := run(a, b, 100), run(b, a, 5)
	require.Equal(t, first, second)
	require.Equal(t, first[0], first[1])
	require.NotEqual(t, first[1], first[2])
	require.NotEqual(t, first[2], first[3])
	require.Equal(t, `{"message":"UID \u003cuid 1 of a\u003e","metadata":{"resourceVersion":"\u003cversion\u003e"}}`, first[4])
	require.Equal(t, "configmap/g-<suffix 1 of g-> and g-<suffix>", first[6])
	require.Equal(t, "at <server> in <folder>", first[7])
}

func TestMaskTexts(t *testing.T) {
	m := newMask("https://127.0.0.1:1", "/folder/x")
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z":               "<time>",
		"2026-01-02T03:04:05.123456Z":        "<microtime>",
		"Too large resource version: 7":      "Too large resource version: <version>",
		"too old resource version: 1 (100)":  "too old resource version: <version> (<version>)",
		"resourceVersion: \"12\"":            "resourceVersion: \"<version>\"",
		"a  1  13s":                          "a  1  <age>",
		"2m5s ago":                           "<age> ago",
		"a  1  2m":                           "a  1  <age>",
		"cpu: 2m":                            "cpu: 2m",
		"10.0.0.17 and 10.1.0.17":            "<address> and 10.1.0.17",
		"v1.37.2-dirty with go1.26.8":        "<git version> with <go version>",
		"404 page not found, 3 replicas":     "404 page not found, 3 replicas",
		"33333333-1111-1111-1111-111111111a": "33333333-1111-1111-1111-111111111a",
	} {
		require.Equal(t, want, m.text(text), text)
	}
}

// TestMaskFields checks the fields that are masked by their names.
func TestMaskFields(t *testing.T) {
	m := newMask("https://127.0.0.1:1", "/folder/x")
	require.Equal(t, `{"metadata":{"continue":"\u003ccontinue\u003e","resourceVersion":"0"},"nodePort":"\u003cport\u003e"}`,
		masked(t, m, `{"metadata":{"continue":"abc","resourceVersion":"0"},"nodePort":31234}`))
	require.Equal(t, `{"metadata":{"managedFields":[{"manager":"a"},{"manager":"b"}]}}`,
		masked(t, m, `{"metadata":{"managedFields":[{"manager":"b"},{"manager":"a"}]}}`))
	require.Equal(t, "NAME  AGE\na  <age>", m.answer(&Answer{Text: "NAME   AGE  \na      7s"}).Text)
}
