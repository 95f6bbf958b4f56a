package store

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/object"
)

func encoded(t *testing.T, value any) string {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out, e.err = e.out[:0], nil
	e.value(value)
	require.NoError(t, e.err)
	require.Empty(t, e.names)
	return string(e.out)
}

func TestTheEncoderWritesWhatEncodingJSONWrites(t *testing.T) {
	for _, value := range []any{
		nil, true, false, int64(0), int64(math.MinInt64), int64(math.MaxInt64), 1.5, 1e300, "", "plain text",
		`"quoted" and \ `, "<a href='b'>&amp;</a>", "line\nbreak\ttab\x00\x7f", "Grüße, 世界", "\u2028\u2029", "broken \xff",
		object.Tree{},
		object.Tree(nil),
		[]any{},
		[]any(nil), json.Number("12.50"),
		map[string]string{"b": "2", "a": "1"},
		object.Tree{
			"b": int64(1), "a": object.Tree{"z": nil, "y": []any{object.Tree{"m": object.Tree{}, "k": true}, "x", []any{}}},
			"<": "<", "": "empty name", "c": object.Tree{"only": object.Tree{"deep": []any{int64(1), int64(2)}}},
		},
	} {
		want := must.Get(json.Marshal(value))(t)
		require.Equal(t, string(want), encoded(t, value))
	}
}

func TestTheEncoderKeepsTheFirstError(t *testing.T) {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out, e.err = e.out[:0], nil
	e.value(object.Tree{"a": math.NaN(), "b": func() {}})
	require.ErrorContains(t, e.err, "NaN")
}

func FuzzEncoder(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"<",null,true,{"b":{}}],"":"\u2028"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		tree, err := object.Decode(body)
		if err != nil {
			t.Skip()
		}
		want := must.Get(json.Marshal(tree))(t)
		require.Equal(t, string(want), encoded(t, tree))
	})
}
