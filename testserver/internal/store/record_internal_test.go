package store

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
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
				r := must.Get(NewRecord(d, managedTree(manager), versions[0]))(t)
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
				want := must.Get(NewRecord(d, managedTree(manager), versions[1]))(t)
				require.True(t, r.Equal(want))
				require.Equal(t, want.Tree(), r.Tree())
			}
		}
	}
}

func TestManagedFieldsMayComeFirst(t *testing.T) {
	tree := object.Tree{"metadata": object.Tree{"name": "m", "managedFields": []any{}}}
	r := must.Get(NewRecord(&registry.Definition{Custom: true}, tree, 1))(t)
	require.Equal(t, `"metadata":{"managedFields":[],"name":"m","resourceVersion":"1"}}`, string(r.AppendMembers(nil, false)))
}

func TestRecordsWithOtherManagersAreNotEqual(t *testing.T) {
	d := &registry.Definition{}
	a := must.Get(NewRecord(d, managedTree("a"), 1))(t)
	b := must.Get(NewRecord(d, managedTree("b"), 1))(t)
	require.False(t, a.Equal(b))
	require.True(t, a.Equal(a.At(1)))
}

func TestNamesNeedNoMemoryOfTheirOwn(t *testing.T) {
	r := must.Get(NewRecord(&registry.Definition{}, managedTree("kubectl"), 9))(t)
	for _, r := range []*Record{r, r.At(10)} {
		require.Equal(t, "default/m", r.Path)
		require.Equal(t, "default", r.Key.Namespace)
		require.Equal(t, "m", r.Key.Name)
		require.True(t, sharesMemory(r.Path, r.Key.Namespace))
		require.True(t, sharesMemory(r.Path, r.Key.Name))
	}
}

func TestObjectsOfATemplateShareTheirContents(t *testing.T) {
	e := encoders.New().(*encoder)
	encoded := func(name, text string) *Record {
		r := &Record{content: content{def: &registry.Definition{}}}
		tree := object.Tree{"metadata": object.Tree{"name": name}, "data": object.Tree{"text": text}}
		require.NoError(t, e.record(r, tree, object.Metadata(tree)))
		return r
	}
	a, b := encoded("a", "x"), encoded("b", "x")
	require.Equal(t, `,"data":{"text":"x"}}`, a.rest)
	require.True(t, sharesMemory(a.rest, b.rest))
	require.Equal(t, `,"data":{"text":"y"}}`, encoded("c", "y").rest)
}

// TestVersionsShareWhatIsEqual uses contents that are too long for the encoder to look for.
func TestVersionsShareWhatIsEqual(t *testing.T) {
	s := New(1, 10, 0)
	s.Define(&registry.Definition{Settings: registry.Settings{Resource: api.Resource{Version: "v1", Kind: "Text", Plural: "texts"}}})
	c := s.Served()[0]
	put := func(before *Record, label, text string) *Record {
		s.Lock()
		defer s.Unlock()
		meta := object.Tree{"name": "a", "labels": object.Tree{"a": label}, "managedFields": []any{strings.Repeat("m", mostShared)}}
		r := must.Get(s.Put(c, before, object.Tree{"metadata": meta, "data": object.Tree{"text": text}}))(t)
		return r
	}
	long := strings.Repeat("x", mostShared)
	first := put(nil, "1", long)
	second := put(first, "2", long)
	require.True(t, sharesMemory(first.rest, second.rest))
	require.True(t, sharesMemory(first.managed, second.managed))
	require.False(t, second.Equal(first))
	require.Contains(t, string(put(second, "2", long+"y").AppendMembers(nil, true)), long+"y")
}

// TestARecordHasItsUID checks texts of states that somebody has written.
func TestARecordHasItsUID(t *testing.T) {
	for _, custom := range []bool{false, true} {
		for _, uid := range []string{"", "u", `a"b`, "ü<", "1:2"} {
			r := must.Get(NewRecord(&registry.Definition{Custom: custom}, object.Tree{"metadata": object.Tree{"name": "m", "uid": uid}}, 9))(t)
			for _, version := range []uint64{9, 10, 1234567, 1} {
				r = r.At(version)
				require.EqualValues(t, uid, r.UID())
				require.Equal(t, fmt.Sprint(version), r.ResourceVersion())
			}
		}
	}
	for _, meta := range []object.Tree{{"name": "m"}, {"name": "m", "uid": nil}} {
		r := must.Get(NewRecord(&registry.Definition{}, object.Tree{"metadata": meta}, 0))(t)
		require.Empty(t, r.UID())
		require.Empty(t, r.ResourceVersion())
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

// TestUntypedRecordsHaveOneForm replaces the definition of a resource without types, as any change of a
// CustomResourceDefinition does. The records are not converted, because that would keep a second copy of each.
func TestUntypedRecordsHaveOneForm(t *testing.T) {
	first, second := &registry.Definition{Untyped: true}, &registry.Definition{Untyped: true}
	r := must.Get(NewRecord(first, object.Tree{"metadata": object.Tree{"name": "m"}}, 1))(t)
	same := must.Get(r.In(second, "v2"))(t)
	require.Same(t, r, same)
}
