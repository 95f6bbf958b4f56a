package codec

import (
	"fmt"
	"reflect"
	"strings"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan is what is known of T once and used for every object. A faster decoder than today's goes behind its methods.
type plan[T any] struct {
	elem         reflect.Type // of the struct that T points to
	protobuf     bool
	metadataOnly bool
	generic      bool // T keeps everything, in a map
	status       bool // T is *metav1.Status
	typeMeta     *typeMeta
	recursive    bool // messages of T may nest without end
}

// typeMeta is where a struct declares its apiVersion and kind, as paths of field indices.
type typeMeta struct{ apiVersion, kind []int }

// wire is what a type generated from protobuf has.
type wire interface{ Unmarshal(b []byte) error }

// generic is what *unstructured.Unstructured has.
type generic interface {
	SetUnstructuredContent(content map[string]any)
	UnstructuredContent() map[string]any
}

// jsonOptions make the decoder read what sigs.k8s.io/json reads: see decision 0002.
var jsonOptions = jsonx.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonx.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

func compile[T any]() plan[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("codec: For needs a pointer to a struct to decode into, and %s is none.", t))
	}
	_, isGeneric := reflect.New(t.Elem()).Interface().(generic)
	p := plan[T]{elem: t.Elem(), generic: isGeneric, status: t == reflect.TypeFor[*metav1.Status]()}
	p.protobuf = !isGeneric && owns[wire](t)
	if isGeneric {
		return p
	}
	names := declaredNames(t)
	p.metadataOnly = names["metadata"]
	for name := range names {
		p.metadataOnly = p.metadataOnly && (name == "metadata" || name == "apiVersion" || name == "kind")
	}
	p.typeMeta = findTypeMeta(t.Elem())
	p.recursive = p.protobuf && isRecursive(t.Elem(), nil)
	return p
}

// owns tells whether t itself, and not one type that it embeds, has the methods of I. A method that two embedded types
// have is not promoted, so only a single one is in doubt.
func owns[I any](t reflect.Type) bool {
	iface := reflect.TypeFor[I]()
	if !t.Implements(iface) {
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

// declaredNames returns the names of the members that are decoded into t, and nothing if t reads JSON by itself.
func declaredNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	if t.Implements(reflect.TypeFor[jsonv1.Unmarshaler]()) || t.Implements(reflect.TypeFor[jsonx.UnmarshalerFrom]()) {
		return names
	}
	for _, f := range reflect.VisibleFields(t.Elem()) {
		if name, ok := jsonName(f); ok {
			names[name] = true
		}
	}
	return names
}

// jsonName returns the name under which a field is decoded; ok is false for one that is not, and for one whose own
// fields stand in its stead.
func jsonName(f reflect.StructField) (name string, ok bool) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() {
		return "", false
	}
	name, _, _ = strings.Cut(tag, ",")
	if name != "" {
		return name, true
	}
	return f.Name, !f.Anonymous
}

func findTypeMeta(t reflect.Type) *typeMeta {
	var found typeMeta
	for _, f := range reflect.VisibleFields(t) {
		name, ok := jsonName(f)
		if !ok || f.Type.Kind() != reflect.String || throughPointer(t, f.Index) {
			continue
		}
		switch name {
		case "apiVersion":
			found.apiVersion = f.Index
		case "kind":
			found.kind = f.Index
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

// fromJSON decodes the bytes of one object, which the scanner has passed.
func (p *plan[T]) fromJSON(b []byte, n *names) (T, error) {
	obj := p.create()
	if p.generic {
		content, err := decodeMap(b, n)
		if err == nil {
			any(obj).(generic).SetUnstructuredContent(content)
		}
		return obj, err
	}
	return obj, jsonx.Unmarshal(b, obj, jsonOptions)
}

// fromProtobuf decodes the bytes of one message.
func (p *plan[T]) fromProtobuf(b []byte) (T, error) {
	obj := p.create()
	if p.recursive && nestsTooDeep(b) {
		return obj, errTooDeep
	}
	return obj, any(obj).(wire).Unmarshal(b)
}

// complete fills in what a server leaves out or cannot know: apiVersion and kind of the items of a list, which each of
// them would repeat, and those of a projection that was sent as PartialObjectMetadata. overwrite shares the strings of
// the resource with all its objects.
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

// clearManagedFields drops what a decoder could not skip.
func clearManagedFields(obj any) {
	if o, ok := obj.(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		o.SetManagedFields(nil)
	}
}
