package codec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wire is the method of a type that was generated from protobuf.
type wire interface{ Unmarshal(b []byte) error }

// protobufPlan decodes messages into the structs of one type: by the numbers of their fields, or with their own
// Unmarshal. It is compiled once from the type, and is immutable.
type protobufPlan struct {
	elem        reflect.Type
	whole, bare *wirePlan // bare skips managedFields; both are nil if the type has to decode itself
	recursive   bool      // the type decodes itself, and messages may nest without limit
}

// compileProtobuf returns the plan of a type, or nil if it cannot be decoded from protobuf.
func compileProtobuf(elem reflect.Type) *protobufPlan {
	own := owns[wire](reflect.PointerTo(elem))
	p := &protobufPlan{elem: elem}
	if !own || isGenerated(elem) {
		p.whole = compileWire(elem)
	}
	switch {
	case p.whole != nil:
		p.bare = p.whole.without(objectMetadata, metaManagedFields)
	case own:
		p.recursive = isRecursive(elem, map[reflect.Type]bool{})
	default:
		return nil
	}
	return p
}

// decode returns a pointer to a new struct with the message in b, without its managedFields if drop is set.
func (p *protobufPlan) decode(r *wireReader, b []byte, drop bool) (any, error) {
	v := reflect.New(p.elem)
	obj := v.Interface()
	w := p.whole
	switch {
	case w == nil:
		return obj, p.decodeItself(obj, b, drop)
	case drop:
		w = p.bare
	}
	r.depth = 0
	r.breaks.begin(b)
	return obj, w.decode(r, placeOf(v), b)
}

// decodeItself calls the Unmarshal of obj.
func (p *protobufPlan) decodeItself(obj any, b []byte, drop bool) error {
	if p.recursive && nestsTooDeep(b) {
		return errTooDeep
	}
	if obj.(wire).Unmarshal(b) != nil {
		return misfit(aMessage, p.elem)
	}
	if drop {
		clearManagedFields(obj)
	}
	return nil
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

// clearManagedFields removes managedFields that a decoder could not skip.
func clearManagedFields(obj any) {
	if o, ok := obj.(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		o.SetManagedFields(nil)
	}
}
