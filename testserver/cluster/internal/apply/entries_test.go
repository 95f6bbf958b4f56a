package apply_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// FuzzEntries sends sets of fields that clients wrote themselves. A malformed list is like none: the stored managers
// stay.
func FuzzEntries(f *testing.F) {
	for _, seed := range []string{
		`[{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}}]`,
		`[{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:x":{"k:{\"a\":\"\\u00e4\\\\\"}":{}}}}]`,
		`[{"manager":"a","operation":"Apply","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{"f:data":7}}]`,
		`[{"manager":7}]`, `[{}]`, `[]`, `[7]`, `[{"fieldsType":"FieldsV2"}]`,
	} {
		f.Add([]byte(seed))
	}
	m := apply.Builtin(fieldmanager.Kind{Kind: "ConfigMap"})
	by := registry.Manager{Name: "me", Served: "v1"}
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []any
		if json.Unmarshal(data, &list) != nil {
			return
		}
		live := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, uid: '1'}, data: {a: b}}")
		after := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, uid: '1'}, data: {a: c}}")
		object.Metadata(after)["managedFields"] = list
		before := text(t, after)
		got := must.Get(m.Updated(by, live, after))(t)
		require.Equal(t, before, text(t, after))
		require.Equal(t, "c", object.StringAt(object.MapAt(got, "data"), "a"))
		again := must.Get(m.Updated(by, got, got))(t)
		require.Equal(t, text(t, got), text(t, again), "a write that changes nothing")
		object.Metadata(live)["managedFields"] = list
		_, _ = m.Applied(by, live, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {a: d}}"), false)
	})
}
