package visible

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":                  {"web-0 (Läuft) 東京 🔒 50 %", "web-0 (Läuft) 東京 🔒 50 %"},
		"a space without break":  {"10\u00a0000\u3000", "10\u00a0000\u3000"},
		"a backslash":            {`C:\new \u001b`, `C:\new \u001b`},
		"escape":                 {"a\x1b[31mb", `a\u001b[31mb`},
		"bell":                   {"a\ab", `a\u0007b`},
		"null":                   {"a\x00b", `a\u0000b`},
		"delete":                 {"a\x7fb", `a\u007fb`},
		"backspace":              {"a\bb", `a\bb`},
		"return":                 {"a\rb", `a\rb`},
		"line break and tab":     {"a\nb\tc", `a\nb\tc`},
		"vertical tab":           {"a\vb\f", `a\u000bb\f`},
		"second set of controls": {"a\u009b31mb\u0085", `a\u009b31mb\u0085`},
		"the same as a byte":     {"a\x9b31mb", `a\x9b31mb`},
		"override":               {"a\u202eb", `a\u202eb`},
		"isolate":                {"a\u2066b\u2069", `a\u2066b\u2069`},
		"direction mark":         {"a\u200fb\u061c", `a\u200fb\u061c`},
		"zero width":             {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"soft hyphen":            {"a\u00adb", `a\u00adb`},
		"line separator":         {"a\u2028b\u2029", `a\u2028b\u2029`},
		"tag":                    {"a\U000e0041b", `a\udb40\udc41b`},
		"private":                {"a\ue000b", `a\ue000b`},
		"cut UTF-8":              {"a\xe2\x80", `a\xe2\x80`},
		"replacement character":  {"a\ufffdb", "a\ufffdb"},
		"empty":                  {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Text(c.text))
			require.Equal(t, c.want, Text(Text(c.text)), "twice is once")
		})
	}
}

func TestFprintf(t *testing.T) {
	var b strings.Builder
	must.Get(Fprintf(&b, "%-9s|%4d|%q|%s|%v|%s\n", "a\n\x1b", 7, "x\x1b\u202e", errors.New("e\tf"), []string{"\x07"}, []byte("\x00")))(t)
	require.Equal(t, `a\n\u001b|   7|"x\x1b\u202e"|e\tf|[\u0007]|\u0000`+"\n", b.String())
	require.Equal(t, `a\n     |`, Sprintf("%-8s|", "a\n"), "the escape is padded")
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	n := must.Get(fmt.Fprint(Writer(&b), "a\tb\x1b\u202e\n"))(t)
	require.Equal(t, 8, n)
	require.Equal(t, "a\tb\\u001b\\u202e\n", b.String())
}

// FuzzText checks that a result has only graphic characters, and that JSON keeps its values.
func FuzzText(f *testing.F) {
	f.Add("web\x1b[2J\u202e\U000e0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }))
		line := must.Get(json.Marshal(s))(t)
		var want, after string
		require.NoError(t, json.Unmarshal(line, &want))
		require.NoError(t, json.Unmarshal([]byte(Text(string(line))), &after))
		require.Equal(t, want, after)
	})
}
