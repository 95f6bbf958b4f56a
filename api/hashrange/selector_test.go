package hashrange_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	low  = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	high = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

// TestSelectorsAreParsed has texts in the syntax of CEL. TestShardedLists in e2e sends several of them to
// kube-apiserver too; no test compares both parsers with all texts.
func TestSelectorsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		low:                              low,
		"  " + low + "\n||" + high + " ": low + " || " + high,
		"(" + low + " || (" + high + ")) || " + low:                                                        low + " || " + high + " || " + low,
		`shardRange ( object . metadata . uid ,"0x0000000000000000",'''0x8000000000000000''')`:             low,
		`shardRange((object.metadata).uid, (r'0x0000000000000000'), R"""0x8000000000000000""")`:            low,
		`shardRange(object.metadata.uid, '\x30x000000000000000\060', '\u0030x\U000000380000000000000')`:    "",
		`shardRange(object.metadata.uid, '\x30x000000000000000\060', '\u0030x\U00000038000000000000000')`:  low,
		"shardRange(object.metadata.uid, // the start\n'0x0000000000000000', '0x8000000000000000') // end": low,
	} {
		s, err := hashrange.ParseSelector(text)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, s.String())
	}
}

// TestWrongSelectors has texts that kube-apiserver refuses too. The error says why.
func TestWrongSelectors(t *testing.T) {
	for text, why := range map[string]string{
		"":                  "empty",
		" \t":               "empty",
		"everything":        "expected shardRange",
		low + " && " + high: "expected ||",
		low + " || ":        "expected shardRange",
		low + ")":           "expected ||",
		"(" + low:           `expected ")"`,
		"hash(object.metadata.uid, '0x0', '0x1')":                                          "expected shardRange",
		strings.ReplaceAll(low, "uid", "name"):                                             "the field is not one of",
		strings.ReplaceAll(low, "object.", ""):                                             "the field is not one of",
		low + " || " + strings.ReplaceAll(high, "uid", "namespace"):                        "they must be of one field",
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')":                     "16 lowercase hexadecimal digits",
		"shardRange(object.metadata.uid, '0x000000000000000A', '0x8000000000000000')":      "16 lowercase hexadecimal digits",
		"shardRange(object.metadata.uid, '0000000000000000', '0x8000000000000000')":        "16 lowercase hexadecimal digits",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')":      "a start that is not less than its end",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')":      "the end of a range is 0",
		"shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')":    "16 lowercase hexadecimal digits",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')":     "16 lowercase hexadecimal digits",
		"shardRange(object.metadata.uid, 0, 1)":                                            "expected a string",
		"shardRange(object.metadata.uid, '0x0000000000000000')":                            `expected ","`,
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000', 'x')": `expected ")"`,
		"shardRange(object.metadata.uid, '0x0000000000000000":                              "does not end",
		"shardRange(object.metadata.uid, '0x00000000\n00000000', '0x8000000000000000')":    "does not end",
		"shardRange(object.metadata.uid, '\\q', '0x8000000000000000')":                     "escape sequence",
		"shardRange(object.metadata.uid, '\\x3":                                            "escape sequence",
		"shardRange(object.metadata.uid, r'\\x30', '0x8000000000000000')":                  "raw string",
		"shardRange(object.metadata.uid, '\xff', '0x8000000000000000')":                    "UTF-8",
		strings.Repeat("(", 40) + low:                                                      "parentheses",
		"shardRange(" + strings.Repeat("(", 40) + "object.metadata.uid":                    "parentheses",
		low + " // " + strings.Repeat("x", 100_001):                                        "characters",
	} {
		_, err := hashrange.ParseSelector(text)
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, "hashrange: at byte ")
	}
}

// FuzzParseSelector parses what it likes. What is accepted is written again, with the same meaning.
func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{
		low, high + "||(" + low + ")", `shardRange((object).metadata.namespace, r"0x0000000000000000", '\x30x10000000000000000')`,
		"// comment\n" + low, "((((", "shardRange(", "shardRange(object.metadata.uid, '''", `"\U`, "",
	} {
		f.Add(seed, "uid")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := hashrange.ParseSelector(text)
		if err != nil {
			require.Less(t, len(err.Error()), 300)
			return
		}
		require.NotEmpty(t, s.Ranges)
		require.Equal(t, s, must.Get(hashrange.ParseSelector(s.String()))(t))
		requireNormal(t, s.Set())
		hash := hashrange.Hash(value)
		require.Equal(t, slices.ContainsFunc(s.Ranges, func(r hashrange.Range) bool { return r.Contains(hash) }), s.Set().Contains(hash))
	})
}
