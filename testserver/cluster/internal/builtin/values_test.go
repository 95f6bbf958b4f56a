package builtin_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// TestValuesDoNotChangeWhatIsStored creates and updates an object of each kind without values and with values.
func TestValuesDoNotChangeWhatIsStored(t *testing.T) {
	for _, m := range readMinimal(t) {
		t.Run(m.Path, atOneTime(func(t *testing.T) {
			d, version := served(t, m.Path)
			if d.Plural == "services" {
				t.Skip("each creation gets another address")
			}
			body, err := json.Marshal(m.Sent)
			require.NoError(t, err)
			store := func(v *registry.Values) (created, updated object.Tree) {
				op := registry.Operation{Target: registry.Target{Served: version, Values: v}}
				decode := func(name string) object.Tree {
					tree, _, err := d.Schema.Decode(op.Target, "application/json", body)
					require.NoError(t, err)
					meta := object.Metadata(tree)
					meta["name"], meta["uid"], meta["creationTimestamp"] = name, "u", "2026-01-02T03:04:05Z"
					meta["managedFields"] = []any{object.Tree{
						"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": object.Tree{"f:spec": object.Tree{}},
					}}
					if d.Namespaced {
						meta["namespace"] = "default"
					}
					return tree
				}
				name := object.StringAt(object.Metadata(m.Sent), "name")
				created, _, err := d.Schema.Create(op, decode(name))
				require.NoError(t, err)
				next := decode(name)
				object.Metadata(next)["resourceVersion"] = "5"
				object.Metadata(next)["labels"] = object.Tree{"a": "b"}
				object.Metadata(created)["resourceVersion"] = "5"
				if updated, _, err = d.Schema.Update(op, created, next); err != nil {
					return created, object.Tree{"error": err.Error()}
				}
				return created, updated
			}
			wantCreated, wantUpdated := store(nil)
			gotCreated, gotUpdated := store(&registry.Values{})
			forget(wantCreated["spec"])
			forget(gotCreated["spec"])
			forget(wantUpdated["spec"])
			forget(gotUpdated["spec"])
			require.Equal(t, wantCreated, gotCreated)
			require.Equal(t, wantUpdated, gotUpdated)
			require.Contains(t, object.Metadata(gotCreated)["managedFields"].([]any)[0], "fieldsV1")
		}))
	}
}

// atOneTime returns a test in which time stands still: some rules write the time into the spec.
func atOneTime(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}
