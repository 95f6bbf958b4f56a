package store

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// sharesMemory reports whether the bytes of text are bytes of whole.
func sharesMemory(whole, text string) bool {
	first := uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	return at >= first && at+uintptr(len(text)) <= first+uintptr(len(whole))
}

// managedTree returns an object, with managedFields if a manager is named.
func managedTree(manager string) object.Tree {
	meta := object.Tree{"namespace": "default", "name": "m", "uid": "u-1", "labels": object.Tree{"a": "<b>"}, "annotations": object.Tree{"c": "d"}}
	if manager != "" {
		meta["managedFields"] = []any{object.Tree{"manager": manager, "operation": "Update"}}
	}
	return object.Tree{"kind": "K", "apiVersion": "v1", "metadata": meta, "data": object.Tree{"text": "x"}, "another": int64(1)}
}

func TestARecordHasAllPartsInOrder(t *testing.T) {
	for _, custom := range []bool{false, true} {
		d := &registry.Definition{Custom: custom}
		for _, manager := range []string{"", "kubectl"} {
			for _, versions := range [][2]uint64{{7, 7}, {99, 100}, {100, 99}} {
				r, err := NewRecord(d, managedTree(manager), versions[0])
				require.NoError(t, err)
				r = r.At(versions[1])
				version := fmt.Sprintf(`"resourceVersion":"%d"`, versions[1])
				managed := `,"managedFields":[{"manager":"kubectl","operation":"Update"}]`
				meta := `{"name":"m","namespace":"default","uid":"u-1",` + version + `,"labels":{"a":"\u003cb\u003e"},"annotations":{"c":"d"}` + managed + `}`
				if custom {
					meta = `{"annotations":{"c":"d"},"labels":{"a":"\u003cb\u003e"}` + managed + `,"name":"m","namespace":"default",` + version + `,"uid":"u-1"}`
				}
				without := strings.Replace(meta, managed, "", 1)
				if manager == "" {
					meta = without
				}
				const rest = `,"another":1,"data":{"text":"x"}}`
				require.Equal(t, meta, string(r.AppendMetadata(nil, false)))
				require.Equal(t, without, string(r.AppendMetadata(nil, true)))
				require.Equal(t, `"metadata":`+meta+rest, string(r.AppendMembers(nil, false)))
				require.Equal(t, `"metadata":`+without+rest, string(r.AppendMembers(nil, true)))
				require.Equal(t, len(`{"metadata":`+meta+rest), r.Size())
				require.Equal(t, fmt.Sprint(versions[1]), r.ResourceVersion())
				want, err := NewRecord(d, managedTree(manager), versions[1])
				require.NoError(t, err)
				require.True(t, r.Equal(want))
				require.Equal(t, want.Tree(), r.Tree())
			}
		}
	}
}

func TestManagedFieldsMayComeFirst(t *testing.T) {
	tree := object.Tree{"metadata": object.Tree{"name": "m", "managedFields": []any{}}}
	r, err := NewRecord(&registry.Definition{Custom: true}, tree, 1)
	require.NoError(t, err)
	require.Equal(t, `"metadata":{"managedFields":[],"name":"m","resourceVersion":"1"}}`, string(r.AppendMembers(nil, false)))
}

func TestRecordsWithOtherManagersAreNotEqual(t *testing.T) {
	d := &registry.Definition{}
	a, err := NewRecord(d, managedTree("a"), 1)
	require.NoError(t, err)
	b, err := NewRecord(d, managedTree("b"), 1)
	require.NoError(t, err)
	require.False(t, a.Equal(b))
	require.True(t, a.Equal(a.At(1)))
}

// TestARecordHoldsItsTextsOnce checks that names and UIDs need no memory of their own, and that a copy with another
// version does not hold the text of the first one.
func TestARecordHoldsItsTextsOnce(t *testing.T) {
	r, err := NewRecord(&registry.Definition{}, managedTree("kubectl"), 9)
	require.NoError(t, err)
	for _, r := range []*Record{r, r.At(10)} {
		require.EqualValues(t, "u-1", r.UID)
		require.True(t, sharesMemory(r.body, string(r.UID)))
		require.Equal(t, "default/m", r.Path)
		require.Equal(t, "default", r.Key.Namespace)
		require.Equal(t, "m", r.Key.Name)
		require.True(t, sharesMemory(r.Path, r.Key.Namespace))
		require.True(t, sharesMemory(r.Path, r.Key.Name))
	}
}

func TestTheEncoderSharesEqualTexts(t *testing.T) {
	e := encoders.New().(*encoder)
	first, second := e.shared([]byte("managed")), e.shared([]byte("managed"))
	require.Equal(t, "managed", second)
	require.True(t, sharesMemory(first, second))
	for i := range 3 * mostTexts {
		e.shared(fmt.Append(nil, i))
		require.LessOrEqual(t, len(e.texts), mostTexts)
	}
	known := len(e.texts)
	require.Len(t, e.shared(make([]byte, mostShared+1)), mostShared+1)
	require.Len(t, e.texts, known, "a long text stays with its record only")
}
