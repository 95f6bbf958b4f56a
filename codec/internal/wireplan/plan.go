package wireplan

import (
	"errors"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/plan"
)

// These are fields of every object, with the numbers of k8s.io/apimachinery's generated.proto.
const (
	// ObjectMetadata is the number of an object's metadata.
	ObjectMetadata = 1
	// These are fields of the metadata.
	metadataName    = 1
	metadataUID     = 5
	metadataVersion = 6
	managedFields   = 17
)

// Plan decodes messages into the structs of one type: by the numbers of their fields, or with their own Unmarshal. It
// is compiled once from the type, and is immutable.
type Plan struct {
	elem        reflect.Type
	whole, bare *messagePlan // bare skips managedFields; both are nil if the type has to decode itself
	recursive   bool         // the type decodes itself, and messages may nest without limit
}

// Compile returns the plan of a type, or nil if it cannot be decoded from protobuf.
func Compile(elem reflect.Type) *Plan {
	own := owns(elem)
	p := &Plan{elem: elem}
	if !own && !mayDecodeItself(elem) || isGenerated(elem) {
		p.whole = compileMessage(elem)
	}
	switch {
	case p.whole != nil:
		p.bare = p.whole.without(ObjectMetadata, managedFields)
	case own:
		p.recursive = plan.IsRecursive(elem)
	default:
		return nil
	}
	return p
}

// Decode returns a pointer to a new struct with the message in b, without its managedFields if drop is set.
func (p *Plan) Decode(r *Reader, b []byte, drop bool) (any, error) {
	v := reflect.New(p.elem)
	obj := v.Interface()
	w := p.whole
	switch {
	case w == nil:
		return obj, p.decodeItself(obj, b, drop)
	case drop:
		w = p.bare
	}
	r.depth, r.structs = 0, 0
	r.breaks.begin(b)
	if r.parts != nil {
		r.hasher.Begin(b)
	}
	err := w.decode(r, placeOf(v), b)
	if r.parts != nil && errors.Is(err, errRepeated) {
		parts := r.parts
		r.parts = nil
		obj, err = p.Decode(r, b, drop)
		r.parts = parts
	}
	return obj, err
}

// Message decodes messages of one struct of k8s.io/apimachinery that is no object, by the numbers of its fields. The
// zero value is ready. It compiles the plan at its first use.
type Message struct {
	once sync.Once
	plan *messagePlan
}

// Unmarshal decodes a message into the struct that to points to, which must always have the same type.
func (m *Message) Unmarshal(to any, b []byte) error {
	v := reflect.ValueOf(to)
	m.once.Do(func() {
		c := compiler{plans: map[reflect.Type]*messagePlan{}, lists: map[reflect.Type]sliceType{}}
		m.plan, _ = c.structOf(v.Type().Elem(), false) // each field of these structs has a number
	})
	r := NewReader(nil, func() error { return nil })
	r.breaks.begin(b)
	return m.plan.decode(&r, placeOf(v), b)
}

// ByNumbers reports whether the plan decodes messages by the numbers of fields, and not with the type's Unmarshal.
func (p *Plan) ByNumbers() bool { return p.whole != nil }

// decodeItself calls the Unmarshal of obj.
func (p *Plan) decodeItself(obj any, b []byte, drop bool) error {
	if p.recursive && nestsTooDeep(b) {
		return plan.ErrTooDeep
	}
	if own.Unmarshal(obj, b) != nil {
		return plan.Misfit(plan.AMessage, p.elem)
	}
	if drop {
		clearManagedFields(obj)
	}
	return nil
}

// Owns reports whether t itself has the methods of I, and not only an embedded type. A method that two embedded types
// have is not promoted, so only a single embedded type is a problem.
func Owns[I any](t reflect.Type) bool {
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
