package wireplan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/plan"
)

// TestCheckRemembersWhatPassed checks structs again and again. Bytes that are good for one field are bad for another,
// and bad bytes stay bad.
func TestCheckRemembersWhatPassed(t *testing.T) {
	type object struct {
		metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
		Spec              struct {
			Text  string   `json:"text" protobuf:"bytes,1,opt,name=text"`
			Texts []string `json:"texts" protobuf:"bytes,2,rep,name=texts"`
		} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
		Other struct {
			At metav1.Time `json:"at" protobuf:"bytes,1,opt,name=at"`
		} `json:"other" protobuf:"bytes,3,opt,name=other"`
	}
	p := Compile(reflect.TypeFor[object]())
	r := NewReader(plan.NewInterner(plan.MaxStrings), func() error { return nil })
	in := func(number protowire.Number, content string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	const different = 3 * firstTags // the table grows
	for range 3 {
		for i := range different {
			spec := string(in(1, fmt.Sprint(i, strings.Repeat(" text", minChecked))))
			require.NoError(t, p.Check(&r, in(2, spec), false))
			if i%100 == 0 {
				require.ErrorContains(t, p.Check(&r, in(3, spec), false), "other.at")
				require.Error(t, p.Check(&r, in(2, spec[:len(spec)-1]), false))
			}
		}
	}
	if c := r.checked.(*checked); c.parts != nil {
		require.GreaterOrEqual(t, len(c.tags), 4*firstTags)
		require.LessOrEqual(t, len(c.tags), maxTags)
	}
}

// TestAppendWithoutManagedFields has managedFields in all places of the metadata, together and among other fields, and
// long and short ones.
func TestAppendWithoutManagedFields(t *testing.T) {
	field := func(number protowire.Number, content string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), content))
	}
	number := string(protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 300))
	managed, long := field(managedFields, "manager"), field(managedFields, strings.Repeat("manager", 100))
	name, after := field(1, "name"), field(18, strings.Repeat("x", 200))
	for _, parts := range [][]string{
		{},
		{name},
		{managed},
		{managed, long},
		{name, number, managed, long, managed, after},
		{managed, name},
		{name, long},
		{managed, name, long},
		{name, managed, after, managed, number},
		{managed, number, managed, managed},
	} {
		whole, rest := "", ""
		for _, part := range parts {
			whole += part
			if part != managed && part != long {
				rest += part
			}
		}
		spec := field(2, field(managedFields, "not of the metadata"))
		for _, other := range []string{"", spec, number} {
			got := AppendWithoutManagedFields([]byte("before"), []byte(other+field(ObjectMetadata, whole)+spec))
			require.Equal(t, "before"+other+field(ObjectMetadata, rest)+spec, string(got))
		}
	}
}
