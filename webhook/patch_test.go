package webhook

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/leatproject/leat/internal/fixture/must"
)

func TestPatches(t *testing.T) {
	for name, c := range map[string]struct{ raw, before, after, patch string }{
		"nothing changes":          {`{"a":1}`, `{"a":1}`, `{"a":1}`, ``},
		"an undeclared field":      {`{"a":1,"x":2}`, `{"a":1}`, `{"a":3}`, `[{"op":"replace","path":"/a","value":3}]`},
		"a field that raw lacks":   {`{}`, `{"a":""}`, `{"a":"b"}`, `[{"op":"add","path":"/a","value":"b"}]`},
		"an empty field stays out": {`{}`, `{"a":"","status":{}}`, `{"a":"","status":{}}`, ``},
		"a removed field":          {`{"a":1}`, `{"a":1}`, `{}`, `[{"op":"remove","path":"/a"}]`},
		"a removed field that raw lacks": {
			`{}`, `{"a":0}`, `{}`, ``,
		},
		"names are escaped": {
			`{"labels":{}}`, `{"labels":{}}`, `{"labels":{"a/b~c":"d"}}`, `[{"op":"add","path":"/labels/a~1b~0c","value":"d"}]`,
		},
		"a parent that raw lacks": {
			`{}`, `{"spec":{}}`, `{"spec":{"n":1}}`, `[{"op":"add","path":"/spec","value":{"n":1}}]`,
		},
		"a parent that raw lacks gets no other fields of the type": {
			`{}`, `{"spec":{"image":"","n":0,"deep":{"a":"","b":""}}}`, `{"spec":{"image":"","n":1,"deep":{"a":"","b":"x"}}}`,
			`[{"op":"add","path":"/spec","value":{"deep":{"b":"x"},"n":1}}]`,
		},
		"a parent that is null gets no other fields of the type": {
			`{"spec":null}`, `{"spec":{"image":"","n":0}}`, `{"spec":{"image":"","n":1}}`,
			`[{"op":"replace","path":"/spec","value":{"n":1}}]`,
		},
		"a parent that the type omits because it is empty": {
			`{"spec":{"x":1}}`, `{}`, `{"spec":{"n":1}}`, `[{"op":"add","path":"/spec/n","value":1}]`,
		},
		"null becomes a value": {`{"a":null}`, `{}`, `{"a":1}`, `[{"op":"replace","path":"/a","value":1}]`},
		"a value becomes null": {`{"a":1}`, `{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		"large integers": {
			`{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"n":9007199254740995}`,
			`[{"op":"replace","path":"/n","value":9007199254740995}]`,
		},
		"another spelling of a number": {`{"n":1.0}`, `{"n":1}`, `{"n":1,"m":2}`, `[{"op":"add","path":"/m","value":2}]`},
		"another type":                 {`{"a":[1]}`, `{"a":[1]}`, `{"a":{"b":1}}`, `[{"op":"replace","path":"/a","value":{"b":1}}]`},
		"an element in front": {
			`{"c":[{"name":"a","x":1}]}`, `{"c":[{"name":"a"}]}`, `{"c":[{"name":"b"},{"name":"a"}]}`,
			`[{"op":"add","path":"/c/0","value":{"name":"b"}}]`,
		},
		"an element that was removed": {
			`{"c":[{"name":"a","x":1},{"name":"b","x":2}]}`, `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"}]}`,
			`[{"op":"remove","path":"/c/0"}]`,
		},
		"an element that changes and moves keeps what the type does not declare": {
			`{"c":[{"name":"a","x":1},{"name":"b","x":2}]}`, `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b","n":3},{"name":"c"},{"name":"a"}]}`,
			`[{"op":"replace","path":"/c/0/name","value":"b"},{"op":"add","path":"/c/0/n","value":3},` +
				`{"op":"replace","path":"/c/0/x","value":2}]`,
		},
		"elements without names have positions": {
			`{"c":[{"port":1,"x":1},{"port":2,"x":2}]}`, `{"c":[{"port":1},{"port":2}]}`, `{"c":[{"port":1},{"port":3}]}`,
			`[{"op":"replace","path":"/c/1/port","value":3}]`,
		},
		"a list of numbers": {`[1,2,3,4]`, `[1,2,3,4]`, `[1,5,4]`, `[{"op":"replace","path":"/1","value":5},{"op":"remove","path":"/2"}]`},
		"the whole value":   {`1`, `1`, `2`, `[{"op":"replace","path":"","value":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			patch := must.Get(patchOf([]byte(c.raw), []byte(c.before), []byte(c.after)))(t)
			if name == "an element that changes and moves keeps what the type does not declare" {
				require.JSONEq(t, `{"c":[{"name":"b","n":3,"x":2},{"name":"c"},{"name":"a","x":1}]}`, apply(t, c.raw, patch))
				return
			}
			require.Equal(t, c.patch, string(patch))
		})
	}
	require.Error(t, must.Err(patchOf([]byte(`{`), []byte(`{}`), []byte(`{"a":1}`))))
}

// apply applies a patch with an independent implementation.
func apply(t *testing.T, raw string, patch []byte) string {
	t.Helper()
	if patch == nil {
		return raw
	}
	decoded := must.Get(jsonpatch.DecodePatch(patch))(t)
	patched, err := decoded.Apply([]byte(raw))
	require.NoError(t, err, "%s of %s", patch, raw)
	return string(patched)
}

// FuzzPatch checks with random documents that a patch turns a document that the type declares as a whole into the
// wanted one, and that undeclared members of objects stay.
func FuzzPatch(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := map[string]any{"a": tree(r, 3), "b": tree(r, 3)}
		after := map[string]any{"a": mutated(r, before["a"]), "b": tree(r, 2)}
		patch := must.Get(patchOf(jsonOf(t, before), jsonOf(t, before), jsonOf(t, after)))(t)
		require.JSONEq(t, string(jsonOf(t, after)), apply(t, string(jsonOf(t, before)), patch))

		raw := map[string]any{"a": before["a"], "b": before["b"], "x": tree(r, 2)}
		patch = must.Get(patchOf(jsonOf(t, raw), jsonOf(t, before), jsonOf(t, after)))(t)
		want := map[string]any{"a": after["a"], "b": after["b"], "x": raw["x"]}
		require.JSONEq(t, string(jsonOf(t, want)), apply(t, string(jsonOf(t, raw)), patch))
	})
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}

// tree returns a random JSON value.
func tree(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(3) == 0 {
		return []any{r.IntN(3), "x", nil, true, "", map[string]any{}, []any{}}[r.IntN(7)]
	}
	if r.IntN(2) == 0 {
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = tree(r, depth-1)
		}
		return list
	}
	members := map[string]any{}
	for range r.IntN(4) {
		members[[]string{"name", "a/b", "c~d", "e"}[r.IntN(4)]] = tree(r, depth-1)
	}
	return members
}

// mutated returns a copy of a value with a few changes.
func mutated(r *rand.Rand, v any) any {
	if r.IntN(6) == 0 {
		return tree(r, 2)
	}
	switch v := v.(type) {
	case []any:
		var list []any
		for _, element := range v {
			switch r.IntN(4) {
			case 0: // it is removed
			case 1:
				list = append(list, tree(r, 1), mutated(r, element))
			default:
				list = append(list, mutated(r, element))
			}
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for name, member := range v {
			if r.IntN(4) > 0 {
				members[name] = mutated(r, member)
			}
		}
		return members
	}
	return v
}
