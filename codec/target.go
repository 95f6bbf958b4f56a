package codec

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// target is the Go type that a codec decodes into, and what all formats need to know of it.
type target struct {
	elem         reflect.Type // the struct that T points to
	metadataOnly bool
	isStatus     bool // T is *metav1.Status
	isGeneric    bool // T keeps everything, in a map
	strings      *plan.Interner
	parts        func() *plan.Parts // the table of parts that objects share; it may return nil
	// pack, if not nil, is called instead of decoding an object. Only Packer.Codec and a Mask set it, so that other
	// programs do not link them.
	pack func(a *answer, o encoded, drop bool) (any, error)

	// These are the paths of field indices to apiVersion and kind, or nil unless T keeps both as strings.
	apiVersion, kind []int
}

func (to *target) compile(t reflect.Type, shared *Tables) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("codec: %s is no pointer to a struct", t))
	}
	if shared == nil {
		shared = newTables(plan.MaxStrings, plan.MaxParts)
	}
	to.elem, to.strings, to.parts = t.Elem(), shared.strings, shared.parts
	to.isStatus, to.isGeneric = t == reflect.TypeFor[*metav1.Status](), jsonplan.IsGeneric(to.elem)
	if !to.isGeneric {
		members := jsonplan.Members(to.elem)
		to.metadataOnly = isMetadataOnly(members)
		to.findTypeMeta(members)
	}
}

// isMetadataOnly reports whether a struct has only the members of PartialObjectMetadata.
func isMetadataOnly(members []jsonplan.Member) bool {
	metadata := false
	for _, m := range members {
		switch m.Name {
		case "metadata":
			metadata = true
		case "apiVersion", "kind":
		default:
			return false
		}
	}
	return metadata
}

// findTypeMeta finds the fields of apiVersion and kind.
func (to *target) findTypeMeta(members []jsonplan.Member) {
	var apiVersion, kind []int
	for _, m := range members {
		if m.Type.Kind() != reflect.String || throughPointer(to.elem, m.Index) {
			continue
		}
		switch m.Name {
		case "apiVersion":
			apiVersion = m.Index
		case "kind":
			kind = m.Index
		}
	}
	if apiVersion != nil && kind != nil {
		to.apiVersion, to.kind = apiVersion, kind
	}
}

func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() != reflect.Struct {
			return true
		}
	}
	return false
}

// complete sets apiVersion and kind, which a server omits in the items of a list, and which differ in a projection that
// was sent as PartialObjectMetadata. overwrite replaces existing values, so that all objects share the strings of the
// resource.
func (to *target) complete(obj any, apiVersion, kind string, overwrite bool) {
	switch {
	case kind == "":
	case to.isGeneric:
		content := obj.(jsonplan.Generic).UnstructuredContent()
		fill(content, "apiVersion", apiVersion)
		fill(content, "kind", kind)
	case to.kind != nil:
		v := reflect.ValueOf(obj).Elem()
		k := v.FieldByIndex(to.kind)
		if overwrite || k.String() == "" {
			k.SetString(kind)
			v.FieldByIndex(to.apiVersion).SetString(apiVersion)
		}
	}
}

func fill(content map[string]any, name, value string) {
	if s, _ := content[name].(string); s == "" {
		content[name] = value
	}
}

// unmarshaler is the method with which a type decodes itself from protobuf.
type unmarshaler interface{ Unmarshal(b []byte) error }

// LetTypesUnmarshal lets types decode themselves from protobuf, with a method Unmarshal(b []byte) error that does
// something that the protobuf tags of their fields do not say. Without this call, objects with such a type are read as
// JSON. Of k8s.io/api, these are reviews of tokens and accesses, and CertificateSigningRequests. A struct with methods
// and hidden fields counts as such a type.
//
// Call it before the first Codec is made, such as in the init of a package. It is not the default, because each program
// would link the Unmarshal methods of all its types.
func LetTypesUnmarshal() {
	wireplan.LetTypesDecode(wireplan.Own{
		Has:       wireplan.Owns[unmarshaler],
		Unmarshal: func(pointer any, b []byte) error { return pointer.(unmarshaler).Unmarshal(b) },
	})
}
