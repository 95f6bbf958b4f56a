package quote_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/quote"
)

func TestShortTexts(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "12345678": "12345678", "123456789": "12345…", "1234ééééé": "1234…", "\xff2345678": "\xff2345678", "\xff23456789": "2345…",
	} {
		require.Equal(t, want, quote.Short(text, 8), "%q", text)
	}
}

func FuzzShort(f *testing.F) {
	f.Add("é", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 4 {
			return
		}
		short := quote.Short(text, most)
		require.LessOrEqual(t, len(short), most)
		if len(text) <= most {
			require.Equal(t, text, short)
			return
		}
		require.True(t, utf8.ValidString(short))
		require.True(t, strings.HasSuffix(short, "…"))
	})
}

func TestListsAreBounded(t *testing.T) {
	require.Empty(t, quote.List(nil, ", "))
	require.Equal(t, "a", quote.List([]string{"a"}, ", "))
	require.Equal(t, "a or b", quote.List([]string{"a", "b"}, " or "))
	ten := strings.Split("abcdefghij", "")
	require.Equal(t, "a, b, c, d, e, f, g, h, i, j", quote.List(ten, ", "))
	require.Equal(t, "a, b, c, d, e, f, g, h, i, j and 1 more", quote.List(append(ten, "k"), ", "))

	long := make([]string, 200_000)
	for i := range long {
		long[i] = strings.Repeat("x", 1000)
	}
	text := quote.List(long, ", ")
	require.Less(t, len(text), 10*130+20)
	require.True(t, strings.HasSuffix(text, "x… and 199990 more"), text)
}

// picky quotes what it does not like.
type picky struct{}

func (picky) UnmarshalJSON(b []byte) error { return errors.New("I do not like " + string(b)) }

func TestErrorsOfJSONQuoteNothing(t *testing.T) {
	var into struct {
		Number int
		Text   string
		Inner  struct{ Flag bool }
		Time   time.Time
		Picky  picky
	}
	for text, want := range map[string]string{
		`{"number": 77777777777777777777777}`: "number is of the JSON type number, which does not fit",
		`{"text": 77777}`:                     "text is of the JSON type number, which does not fit",
		`{"inner": {"flag": "77777"}}`:        "inner.flag is of the JSON type string, which does not fit",
		`"77777"`:                             "it is of the JSON type string, which does not fit",
		`{"time": "77777"}`:                   "a value in it does not fit its field",
		`{"picky": "77777"}`:                  "a value in it does not fit its field",
		`{"77777": 77777`:                     "it is not JSON at byte 15: unexpected end of JSON input",
		`<77777>`:                             "it is not JSON at byte 1: invalid character '<' looking for beginning of value",
	} {
		err := json.Unmarshal([]byte(text), &into)
		require.Error(t, err, text)
		got := quote.JSON(err).Error()
		require.Equal(t, strings.ToLower(want), strings.ToLower(got), text)
		require.NotContains(t, got, "77777")
	}
}

func TestObjectsAreRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		"":                               false,
		"no route":                       false,
		"<html>":                         false,
		`{"message": "no route"}`:        false,
		`{"kind": "Pod"}`:                true,
		` {"metadata": {"na`:             true,
		`[{"apiVersion":"v1"}]`:          true,
		`{"items":[]}`:                   true,
		"apiVersion: v1\nkind: Secret\n": true,
		"k8s\x00\n\x0c\n\x02v1":          true,
		`the "kind" is unknown`:          false,
	} {
		require.Equal(t, want, quote.IsObject([]byte(text)), text)
	}
}
