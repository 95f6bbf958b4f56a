package object_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/object"
)

func TestMissingMembersAreZero(t *testing.T) {
	for _, m := range []object.Tree{nil, {}, {"x": nil}, {"x": true}} {
		require.Empty(t, object.StringAt(m, "x"))
		require.Nil(t, object.SliceAt(m, "x"))
		require.Nil(t, object.StringsAt(m, "x"))
		require.Nil(t, object.MapAt(m, "x"))
		_, ok := object.IntAt(m, "x")
		require.False(t, ok)
		require.Empty(t, object.TextAt(m, "x", "y"))
		require.Nil(t, object.Labels(m))
	}
	require.Equal(t, []string{"a"}, object.StringsAt(object.Tree{"x": []any{"a", true}}, "x"))
	require.Equal(t, "true", object.TextAt(object.Tree{"x": object.Tree{"y": true}}, "x", "y"))
	_, ok := object.IntAt(object.Tree{"x": 1.5}, "x")
	require.False(t, ok)
}

func TestIntegersKeepTheirDigits(t *testing.T) {
	tree, err := object.Decode([]byte(`{"n":9223372036854775807}`))
	require.NoError(t, err)
	n, ok := object.IntAt(tree, "n")
	require.True(t, ok)
	require.Equal(t, int64(math.MaxInt64), n)
	_, err = object.Decode([]byte("null"))
	require.ErrorContains(t, err, "expected an object")
}

func TestFromEncodes(t *testing.T) {
	tree, err := object.From(struct {
		Kind string `json:"kind"`
	}{"Pod"})
	require.NoError(t, err)
	require.Equal(t, object.Tree{"kind": "Pod"}, tree)
	_, err = object.From([]int{1})
	require.ErrorContains(t, err, "does not encode to a JSON object")
}

func TestSetOrDropLeavesNothingEmpty(t *testing.T) {
	m := object.Tree{"a": "1", "b": []any{"1"}}
	object.SetOrDrop(m, "a", nil)
	object.SetOrDropList(m, "b", nil)
	object.SetOrDropList(m, "c", []any{"1"})
	object.SetDefault(m, "c", "kept")
	object.SetDefault(m, "d", "new")
	require.Equal(t, object.Tree{"c": []any{"1"}, "d": "new"}, m)
}

func TestEncodeLike(t *testing.T) {
	model := `{"z":{"b":1,"a":[2]},"m":{"y":1,"x":2}} `
	for _, c := range []struct{ value, want string }{
		{`{"m":{"x":2,"y":1},"z":{"a":[2],"b":1}}`, `{"z":{"b":1,"a":[2]},"m":{"y":1,"x":2}}`},
		{`{"z":{"a":[2],"b":1},"m":{"x":2,"y":9}}`, `{"m":{"x":2,"y":9},"z":{"b":1,"a":[2]}}`},
		{`{"z":"text","a\"":null}`, `{"a\"":null,"z":"text"}`},
	} {
		tree, err := object.Decode([]byte(c.value))
		require.NoError(t, err)
		require.Equal(t, c.want, string(object.EncodeLike([]byte(model), tree)))
	}
	require.Equal(t, `{"a":{},"b":1}`, string(object.EncodeLike(nil, object.Tree{"b": int64(1), "a": object.Tree{}})))
}
