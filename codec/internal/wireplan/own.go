package wireplan

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Own lets types decode themselves with a method Unmarshal. Only code that uses it names that method: if a program
// calls an interface method of this name, or has the interface, the linker keeps the Unmarshal of every type.
type Own struct {
	Has       func(pointer reflect.Type) bool   // reports whether a pointer to a struct has the method
	Unmarshal func(pointer any, b []byte) error // calls it
}

// own is nil if no type decodes itself.
var own *Own

// LetTypesDecode sets how types decode themselves, for all plans that are compiled later.
func LetTypesDecode(o Own) { own = &o }

// owns reports whether a struct has its own Unmarshal, and own is set.
func owns(t reflect.Type) bool { return own != nil && own.Has(reflect.PointerTo(t)) }

// ownsWire reports whether values of t decode themselves: they have an Unmarshal that may do something other than the
// tags of the fields say.
func ownsWire(t reflect.Type) bool { return own != nil && !isGenerated(t) && owns(t) }

// mayDecodeItself reports whether a struct may have an Unmarshal that cannot be seen because own is nil: it has methods
// and hidden fields. Without hidden fields, what Unmarshal does is what the tags say; see isGenerated.
func mayDecodeItself(t reflect.Type) bool {
	if own != nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).NumMethod() == 0 || isKnown(t) {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); !f.IsExported() && !f.Anonymous {
			return true
		}
	}
	return false
}

// isKnown reports whether the package has its own code for a type that decodes itself.
func isKnown(t reflect.Type) bool {
	return t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]()
}

// isGenerated reports whether a struct looks as if go-to-protobuf had generated its Unmarshal: every field is exported
// and has a number, or a tag that excludes it from JSON too.
func isGenerated(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		_, _, numbered := wireNumber(f)
		isTypeMeta := f.Anonymous && f.Type == reflect.TypeFor[metav1.TypeMeta]()
		if !f.IsExported() || !numbered && !isTypeMeta && (f.Tag.Get("json") != "-" || f.Tag.Get("protobuf") != "") {
			return false
		}
	}
	return t.NumField() > 0
}
