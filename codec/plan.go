package codec

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan holds what is compiled once from T and used for every object. A faster decoder can replace the one behind its
// methods.
type plan[T any] struct {
	elem         reflect.Type // the struct that T points to
	json         *jsonPlan
	protobuf     bool
	metadataOnly bool
	generic      bool // T keeps everything, in a map
	status       bool // T is *metav1.Status
	typeMeta     *typeMeta
	recursive    bool // T decodes messages itself, and they may nest without limit

	wire, wireBare *wirePlan // nil if T decodes messages itself, or cannot be decoded from protobuf
	strings        *interner
	listMeta       decode // into a metav1.ListMeta
}

// typeMeta holds the fields of apiVersion and kind in a struct, as paths of field indices.
type typeMeta struct{ apiVersion, kind []int }

// wire is the method of a type that was generated from protobuf.
type wire interface{ Unmarshal(b []byte) error }

// generic is the method of *unstructured.Unstructured.
type generic interface {
	SetUnstructuredContent(content map[string]any)
	UnstructuredContent() map[string]any
}

func compile[T any]() plan[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("codec: For needs a pointer to a struct to decode into, and %s is none.", t))
	}
	_, isGeneric := reflect.New(t.Elem()).Interface().(generic)
	p := plan[T]{elem: t.Elem(), generic: isGeneric, status: t == reflect.TypeFor[*metav1.Status](), strings: newInterner()}
	p.listMeta = newJSONCompiler().compile(reflect.TypeFor[metav1.ListMeta]())
	if isGeneric {
		return p
	}
	own := owns[wire](t)
	if !own || isGenerated(t.Elem()) {
		p.wire = compileWire(t.Elem())
	}
	p.protobuf = own || p.wire != nil
	if p.wire != nil {
		p.wireBare = p.wire.without(objectMetadata, metaManagedFields)
	}
	p.json = compileJSON(t.Elem())
	members := declared(t.Elem())
	p.metadataOnly = isMetadataOnly(members)
	p.typeMeta = findTypeMeta(t.Elem(), members)
	p.recursive = p.protobuf && p.wire == nil && isRecursive(t.Elem(), map[reflect.Type]bool{})
	return p
}

// owns reports whether t itself has the methods of I, and not only an embedded type. A method that two embedded types
// have is not promoted, so only a single embedded type is a problem.
func owns[I any](t reflect.Type) bool {
	iface := reflect.TypeFor[I]()
	if !t.Implements(iface) || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	promoting := 0
	for i := range t.Elem().NumField() {
		f := t.Elem().Field(i)
		if f.Anonymous && (f.Type.Implements(iface) || reflect.PointerTo(f.Type).Implements(iface)) {
			promoting++
		}
	}
	return promoting != 1
}

// declared returns the members that are decoded into the struct t. It returns no members if t has its own
// UnmarshalJSON.
func declared(t reflect.Type) []member {
	if readsItself(t) {
		return nil
	}
	return members(t)
}

// isMetadataOnly reports whether a struct has only the members of PartialObjectMetadata.
func isMetadataOnly(members []member) bool {
	metadata := false
	for _, m := range members {
		switch m.name {
		case "metadata":
			metadata = true
		case "apiVersion", "kind":
		default:
			return false
		}
	}
	return metadata
}

// findTypeMeta returns the fields of apiVersion and kind in t, or nil unless t keeps both as strings.
func findTypeMeta(t reflect.Type, members []member) *typeMeta {
	var found typeMeta
	for _, m := range members {
		if m.typ.Kind() != reflect.String || throughPointer(t, m.index) {
			continue
		}
		switch m.name {
		case "apiVersion":
			found.apiVersion = m.index
		case "kind":
			found.kind = m.index
		}
	}
	if found.apiVersion == nil || found.kind == nil {
		return nil
	}
	return &found
}

func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() != reflect.Struct {
			return true
		}
	}
	return false
}

// create returns a new T.
func (p *plan[T]) create() T { return reflect.New(p.elem).Interface().(T) }

// leavesOut reports whether fromJSON can skip managedFields.
func (p *plan[T]) leavesOut() bool { return p.generic || p.json.bare != nil }

// fromJSON decodes one object that the scanner has checked. bare skips its managedFields.
func (p *plan[T]) fromJSON(r *jsonReader, bare bool) (T, error) {
	if !p.generic {
		obj, err := p.json.decode(r, bare)
		return obj.(T), err
	}
	where := nowhere
	if bare {
		where = inObject
	}
	obj := p.create()
	g := genericReader{*r}
	content, err := g.object(where)
	if err == nil {
		any(obj).(generic).SetUnstructuredContent(content)
	}
	return obj, err
}

// fromProtobuf decodes the bytes of one message. bare skips its managedFields.
func (p *plan[T]) fromProtobuf(r *wireReader, b []byte, bare bool) (T, error) {
	obj := p.create()
	if p.wire != nil {
		w := p.wire
		if bare {
			w = p.wireBare
		}
		return obj, w.decode(r, placeOf(reflect.ValueOf(obj)), b)
	}
	if p.recursive && nestsTooDeep(b) {
		return obj, errTooDeep
	}
	if any(obj).(wire).Unmarshal(b) != nil {
		return obj, misfit(aMessage, p.elem)
	}
	return obj, nil
}

// complete sets apiVersion and kind, which a server omits in the items of a list, and which differ in a projection that
// was sent as PartialObjectMetadata. overwrite replaces existing values, so that all objects share the strings of the
// resource.
func (p *plan[T]) complete(obj T, apiVersion, kind string, overwrite bool) {
	switch {
	case kind == "":
	case p.generic:
		content := any(obj).(generic).UnstructuredContent()
		fill(content, "apiVersion", apiVersion)
		fill(content, "kind", kind)
	case p.typeMeta != nil:
		v := reflect.ValueOf(obj).Elem()
		k := v.FieldByIndex(p.typeMeta.kind)
		if overwrite || k.String() == "" {
			k.SetString(kind)
			v.FieldByIndex(p.typeMeta.apiVersion).SetString(apiVersion)
		}
	}
}

func fill(content map[string]any, name, value string) {
	if s, _ := content[name].(string); s == "" {
		content[name] = value
	}
}

// clearManagedFields removes managedFields that a decoder could not skip.
func clearManagedFields(obj any) {
	if o, ok := obj.(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		o.SetManagedFields(nil)
	}
}
