package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// Mask is a set of fields of a Go type. A Codec with a Mask keeps these fields and skips all others while it reads, so
// a *corev1.Pod costs what a struct with these fields costs to decode. A masked object has a mark in its managedFields,
// which survives DeepCopy; MaskOf reads it. A Mask is safe for concurrent use. client-go has nothing like it: a
// transform prunes an object that was decoded already.
//
// A path has the names of fields in JSON, with dots between them. Pointers and lists need no sign of their own:
//
//	spec.nodeName
//	spec.containers.image              of each container
//	status.conditions[type,status]     two fields of each condition
//	metadata.labels["app"]             one key of a map
//	status.allocated[*].size           one field of each value of a map
//
// What is below the end of a path is kept whole, except metadata.managedFields. Lists have no [*] and no [0]. These
// fields are always kept: apiVersion, kind, and in metadata name, namespace, uid, resourceVersion, generation,
// creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, ownerReferences and finalizers. All labels are kept
// too, because selectors need them, unless a path names the labels that are enough.
type Mask struct {
	object reflect.Type // a pointer to a struct
	fields string
	mark   string // the manager in the managedFields of masked objects
	json   *plan.Mask
	wire   *wireplan.Mask // nil for an unstructured object
	bare   *wireplan.Mask // wire without the identity, which a Packed has besides its bytes
	stats  maskStats
}

// maskStats count what went through a Mask.
type maskStats struct{ objects, read, kept atomic.Int64 }

// MaskStats are the objects that were read with a Mask since it was made.
type MaskStats struct {
	Objects int64
	Read    int64 // the bytes of these objects in the answers
	Kept    int64 // the bytes that were left of them
}

// alwaysKept are the fields without which an object cannot be cached, owned or awaited.
var alwaysKept = []string{
	"apiVersion", "kind",
	"metadata[name,namespace,uid,resourceVersion,generation,creationTimestamp,ownerReferences,finalizers]",
	"metadata[deletionTimestamp,deletionGracePeriodSeconds]",
}

var identityPaths = []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// NewMask returns the Mask of T with the fields at the given paths, at least one. An error names the first path that is
// malformed, or that leads to no field of T. The fields of an unstructured object are not known, so every name is
// accepted.
func NewMask[T any](paths ...string) (*Mask, error) { return NewMaskOf(reflect.TypeFor[T](), paths...) }

// NewMaskOf is NewMask for a type that is known only at run time: a pointer to a struct.
func NewMaskOf(object reflect.Type, paths ...string) (*Mask, error) {
	if object == nil || object.Kind() != reflect.Pointer || object.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("codec: a mask needs a pointer to a struct, and %v is something else", object)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("codec: the mask of %s has no path", object)
	}
	m, bare := &Mask{object: object, json: &plan.Mask{}}, &plan.Mask{}
	isGeneric := jsonplan.IsGeneric(object.Elem())
	var fields []string
	add := func(steps []plan.Step) {
		m.json.Add(steps)
		if !slices.Contains(identityPaths, formatPath(steps)) {
			bare.Add(steps)
		}
	}
	for _, path := range paths {
		all, err := parsePath(path)
		for _, steps := range all {
			at := formatPath(steps)
			switch {
			case err != nil:
			case strings.HasPrefix(at, "metadata.managedFields"):
				err = errors.New("metadata.managedFields mark masked objects")
			case !isGeneric:
				err = checkPath(object, steps)
			}
			fields = append(fields, at)
			if at != "metadata" {
				add(steps)
				continue
			}
			for _, m := range jsonplan.Members(reflect.TypeFor[metav1.ObjectMeta]()) {
				if m.Name != "managedFields" {
					add(append(steps[:1:1], plan.Step{Name: m.Name}))
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("codec: the path %q in the mask of %s: %w", path, object, err)
		}
	}
	kept := alwaysKept
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "metadata.labels") }) {
		kept = append(kept[:len(kept):len(kept)], "metadata.labels")
	}
	for _, path := range kept {
		all, _ := parsePath(path)
		for _, steps := range all {
			add(steps)
		}
	}
	slices.Sort(fields)
	m.fields = strings.Join(slices.Compact(fields), ",")
	m.mark = MaskPrefix + m.fields + maskSuffix
	if !isGeneric {
		m.wire, m.bare = wireplan.CompileMask(object, m.json), wireplan.CompileMask(object, bare)
	}
	return m, nil
}

// The manager in the mark of a masked object is between these. The mark has no operation, which each entry of a server
// has, so a client cannot choose a field manager that makes whole objects look masked.
const (
	MaskPrefix = "leat keeps only ("
	maskSuffix = ")"
)

// NewMasked returns a Codec that keeps only the fields of a Mask. T is the type of the Mask, or an interface that this
// type implements; otherwise NewMasked panics. It is a function and not an option, so that programs without a Mask do
// not link it.
func NewMasked[T any](m *Mask, o Options) *Codec[T] {
	m.mustFit(reflect.TypeFor[T]())
	c := NewOf[T](m.object, o)
	c.d.target.pack = m.decode
	decodeByNumbers(&c.d)
	return c
}

// NewMaskedPacker returns a Packer whose Codecs keep only the fields of a Mask. See NewMasked for T.
func NewMaskedPacker[T any](m *Mask, o Options) *Packer[T] {
	m.mustFit(reflect.TypeFor[T]())
	k := NewPackerOf[T](m.object, o)
	k.mask = m
	decodeByNumbers(&k.d)
	return k
}

// decodeByNumbers leaves protobuf out if the type decodes itself, because a Mask goes by the numbers of the fields.
func decodeByNumbers(d *decoder) {
	if c, ok := d.readers[protobufAt].(*protobufCodec); ok && !c.plan.ByNumbers() {
		d.readers[protobufAt] = nil
	}
}

func (m *Mask) mustFit(t reflect.Type) {
	if !m.object.AssignableTo(t) {
		panic(fmt.Sprintf("codec: the mask is for %s, and the objects are %s", m.object, t))
	}
}

// String returns the paths in alphabetical order, with commas between them. Masks of one type with equal strings keep
// the same fields.
func (m *Mask) String() string { return m.fields }

// Object returns the type of the objects: a pointer to a struct.
func (m *Mask) Object() reflect.Type { return m.object }

// KeepsLabel reports whether objects keep the label with a key.
func (m *Mask) KeepsLabel(key string) bool {
	at := m.json
	for _, name := range [...]string{"metadata", "labels", key} {
		below, kept := at.Child([]byte(name))
		if !kept || below == nil {
			return kept
		}
		at = below
	}
	return true
}

// Stats returns what went through the Mask.
func (m *Mask) Stats() MaskStats {
	return MaskStats{Objects: m.stats.objects.Load(), Read: m.stats.read.Load(), Kept: m.stats.kept.Load()}
}

// MaskOf returns the fields that a masked object keeps, as Mask.String writes them. ok is false for a whole object, and
// for an object of a type without managedFields.
func MaskOf(object any) (fields string, ok bool) {
	if v := reflect.ValueOf(object); v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	var entries []metav1.ManagedFieldsEntry
	switch o := object.(type) {
	case jsonplan.Generic: // its GetManagedFields converts every entry
		metadata, _ := o.UnstructuredContent()["metadata"].(map[string]any)
		if all, _ := metadata["managedFields"].([]any); len(all) == 1 {
			entry, _ := all[0].(map[string]any)
			manager, _ := entry["manager"].(string)
			operation, _ := entry["operation"].(string)
			entries = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation)}}
		}
	case interface {
		GetManagedFields() []metav1.ManagedFieldsEntry
	}:
		entries = o.GetManagedFields()
	}
	if len(entries) == 1 && entries[0].Operation == "" {
		if fields, ok = strings.CutPrefix(entries[0].Manager, MaskPrefix); ok {
			return strings.TrimSuffix(fields, maskSuffix), true
		}
	}
	return "", false
}

// MaskedError is the error of a write that would delete the fields which a masked object lacks.
type MaskedError struct {
	Fields string // that the object keeps; see Mask.String
}

// Error names the mask, and the remedy.
func (e *MaskedError) Error() string {
	return fmt.Sprintf("the object comes from a cache that keeps only the fields %s, so the write would delete all others: "+
		"patch the changed fields, or read the whole object from the server", e.Fields)
}

// RefuseMasked returns a *MaskedError if the object is masked.
func RefuseMasked(object any) error {
	if fields, ok := MaskOf(object); ok {
		return &MaskedError{Fields: fields}
	}
	return nil
}

// decode decodes an object with the Mask, for target.pack.
func (m *Mask) decode(a *answer, o encoded, _ bool) (any, error) {
	m.prune(o)
	obj, err := o.decode(false)
	if err == nil {
		a.target.complete(obj, a.apiVersion, a.kind, a.strict)
		m.Mark(obj)
	}
	return obj, err
}

// prune removes what the Mask does not keep from the bytes of an object, which is then valid until the next one. This
// and the functions below are no methods of the objects, because an agent without masks would link their names.
func (m *Mask) prune(o encoded) {
	switch o := o.(type) {
	case *protobufObject:
		read := len(o.raw)
		o.packed = m.wire.Append(o.packed[:0], o.raw)
		o.raw = o.packed
		m.count(read, len(o.raw))
	case *jsonObject:
		c := o.outline.At(o.b)
		if len(c.Tokens) == 0 {
			return
		}
		at := c
		read := len(at.Raw())
		o.packed = jsonplan.AppendMasked(o.packed[:0], c, m.json)
		_ = scan.Rescan(&o.outline, o.packed) // its parts were scanned before
		o.set(o.packed)
		m.count(read, len(o.packed))
	}
}

func (m *Mask) count(read, kept int) {
	m.stats.objects.Add(1)
	m.stats.read.Add(int64(read))
	m.stats.kept.Add(int64(kept))
}

// Mark marks an object as masked, for a caller whose transform has removed the mark.
func (m *Mask) Mark(obj any) {
	if generic, ok := obj.(jsonplan.Generic); ok {
		if metadata, ok := generic.UnstructuredContent()["metadata"].(map[string]any); ok {
			metadata["managedFields"] = []any{map[string]any{"manager": m.mark}}
		}
		return
	}
	if o, ok := obj.(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: m.mark}})
	}
}

// pruneBare is prune without the identity. It reports whether the identity can be put back: the metadata come first.
func (m *Mask) pruneBare(o *protobufObject) bool {
	if len(o.raw) == 0 || o.raw[0] != wireplan.ObjectMetadata<<3|byte(protowire.BytesType) {
		return false
	}
	o.packed = m.bare.Append(o.packed[:0], o.raw)
	m.count(len(o.raw), len(o.packed))
	o.raw = o.packed
	return true
}

// appendIdentified appends the message of an object to whose metadata, the first field, an identity is added.
func appendIdentified(dst []byte, p *Packed, message string) []byte {
	size, n := protowire.ConsumeVarint([]byte(message[1:min(len(message), 1+binary.MaxVarintLen64)]))
	metadata, rest := message[1+n:1+n+int(size)], message[1+n+int(size):]
	at := len(dst)
	dst = appendField(dst, metaName, p.GetName())
	dst = appendField(dst, metaNamespace, p.GetNamespace())
	dst = appendField(dst, metaUID, string(p.GetUID()))
	dst = appendField(dst, metaResourceVersion, p.GetResourceVersion())
	dst = append(dst, metadata...)
	head := protowire.AppendVarint(append(make([]byte, 0, 8), message[0]), uint64(len(dst)-at))
	return append(slices.Insert(dst, at, head...), rest...)
}

// pathParser reads a path of a Mask. The rest begins behind what was read.
type pathParser struct{ rest string }

// parsePath returns the paths that a path with groups stands for.
func parsePath(path string) ([][]plan.Step, error) {
	p := pathParser{path}
	all, err := p.path(nil)
	if err == nil && p.rest != "" {
		err = p.unexpected()
	}
	return all, err
}

func (p *pathParser) unexpected() error {
	if p.rest == "" {
		return fmt.Errorf("it ends too early")
	}
	return fmt.Errorf("unexpected %q", p.rest)
}

func (p *pathParser) take(token string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, token)
	return found
}

// path reads a path behind the given steps, up to its end, a comma or the end of a group.
func (p *pathParser) path(before []plan.Step) ([][]plan.Step, error) {
	end := strings.IndexAny(p.rest, `.,[]`)
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	if _, err := strconv.Atoi(name); err == nil {
		return nil, fmt.Errorf("%s is an index, but a path leads through all elements of a list without a sign", name)
	}
	if name == "" || strings.ContainsAny(name, "\"* \t\n") {
		return nil, p.unexpected()
	}
	p.rest = p.rest[end:]
	steps := append(before[:len(before):len(before)], plan.Step{Name: name})
	for p.take("[") {
		switch {
		case p.take("*]"):
			steps = append(steps, plan.Step{IsKey: true, Every: true})
		case strings.HasPrefix(p.rest, `"`):
			quoted, err := strconv.QuotedPrefix(p.rest)
			if err != nil {
				return nil, p.unexpected()
			}
			key, _ := strconv.Unquote(quoted)
			p.rest = p.rest[len(quoted):]
			if !p.take("]") {
				return nil, p.unexpected()
			}
			steps = append(steps, plan.Step{Name: key, IsKey: true})
		default:
			return p.group(steps)
		}
	}
	if p.take(".") {
		return p.path(steps)
	}
	return [][]plan.Step{steps}, nil
}

// group reads paths with commas between them, up to the end of the group.
func (p *pathParser) group(before []plan.Step) (all [][]plan.Step, err error) {
	for {
		below, err := p.path(before)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
		switch {
		case p.take("]"):
			return all, nil
		case !p.take(","):
			return nil, p.unexpected()
		}
	}
}

func formatPath(steps []plan.Step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.Every:
			b.WriteString("[*]")
		case s.IsKey:
			b.WriteString("[" + strconv.Quote(s.Name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Name)
		}
	}
	return b.String()
}

// checkPath reports a path that leads to no field of a type.
func checkPath(t reflect.Type, steps []plan.Step) error {
	for i, s := range steps {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Interface:
			return nil
		case s.IsKey && (t.Kind() != reflect.Map || t.Key().Kind() != reflect.String && !s.Every):
			return fmt.Errorf("%s is no map of strings, but a %s", formatPath(steps[:i]), t)
		case s.IsKey:
			t = t.Elem()
		case t.Kind() == reflect.Map:
			return fmt.Errorf(`%s is a map: write %[1]s["key"], or %[1]s[*] for every key`, formatPath(steps[:i]))
		default:
			f := fieldOf(t, s.Name)
			if f == nil {
				return fmt.Errorf("%s has no field %q", t, s.Name)
			}
			t = f
		}
	}
	return nil
}

// fieldOf returns the type of a field by its name in JSON, or nil.
func fieldOf(t reflect.Type, name string) reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, m := range jsonplan.Members(t) {
		if m.Name == name {
			return m.Type
		}
	}
	return nil
}
