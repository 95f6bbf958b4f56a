package store

import (
	"strings"
	"sync"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// variants are other encodings of a record: in another version, or in protobuf. Each is made when a client first asks
// for it, and kept with the record.
type variants struct {
	mu      sync.Mutex           // guards the fields below
	under   *registry.Definition // of the resource when they were made
	records map[string]*Record
	encoded map[string][]byte
	values  map[any]any
}

// storedVersion returns the version in which a tree is stored. Only custom resources may be stored in another version
// than that of their definition: the definition has changed since the object was written.
func storedVersion(d *registry.Definition, tree object.Tree) string {
	if _, version, ok := strings.Cut(object.StringAt(tree, "apiVersion"), "/"); ok && d.FromCRD {
		return version
	}
	return d.Stored()
}

// variants returns the variants of the record.
func (r *Record) variants() *variants {
	if v := r.other.Load(); v != nil {
		return v
	}
	r.other.CompareAndSwap(nil, &variants{})
	return r.other.Load()
}

// isIn reports whether the record itself is what In returns.
func (r *Record) isIn(d *registry.Definition, served string) bool {
	if d.Untyped { // a version adds only kind and apiVersion, which no record has
		return true
	}
	switch {
	case d.Alias.Resource != "":
		return false
	case d.FromCRD:
		return r.def == d && served == r.stored
	}
	return r.def.Resource == d.Resource && served == d.Stored() // the definition of a fork may be another one
}

// In returns the record in a served version of a resource, by the present rules of the resource. The
// record itself is the result if it has this form.
func (r *Record) In(d *registry.Definition, served string) (*Record, error) {
	if r.isIn(d, served) {
		return r, nil
	}
	others := r.variants()
	if known := others.record(d, served); known != nil {
		return known, nil
	}
	tree, err := d.Schema.Convert(served, r.Tree()) // without the mutex, because it may call a webhook
	if err != nil {
		return nil, err
	}
	converted, err := NewRecord(d, tree, r.Version)
	if err != nil {
		return nil, err
	}
	return others.keep(d, served, converted), nil
}

// record returns a variant by the rules of a definition, or nil.
func (v *variants) record(d *registry.Definition, served string) *Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.under != d {
		return nil
	}
	return v.records[served]
}

// keep adds a variant, unless another goroutine did so in the meantime. It returns the variant that is kept.
func (v *variants) keep(d *registry.Definition, served string, r *Record) *Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.under != d {
		v.under, v.records, v.encoded = d, map[string]*Record{}, nil
	}
	if known := v.records[served]; known != nil {
		return known
	}
	v.records[served] = r
	return r
}

// Encoded returns what make returned when it was first called for a name.
func (r *Record) Encoded(name string, make func() ([]byte, error)) ([]byte, error) {
	others := r.variants()
	others.mu.Lock()
	known := others.encoded[name]
	others.mu.Unlock()
	if known != nil {
		return known, nil
	}
	encoded, err := make()
	if err != nil {
		return nil, err
	}
	others.mu.Lock()
	defer others.mu.Unlock()
	if others.encoded == nil {
		others.encoded = map[string][]byte{}
	}
	others.encoded[name] = encoded
	return encoded, nil
}

// Value returns what make returned when it first succeeded for a key. The record keeps the value until another record
// takes its place, so all stores that have the record share it. The value must not be changed.
func Value[T any](r *Record, key any, make func() (T, error)) (T, error) {
	others := r.variants()
	others.mu.Lock()
	known, ok := others.values[key].(T)
	others.mu.Unlock()
	if ok {
		return known, nil
	}
	value, err := make()
	if err != nil {
		return value, err
	}
	others.mu.Lock()
	defer others.mu.Unlock()
	if known, ok := others.values[key].(T); ok {
		return known, nil
	}
	if others.values == nil {
		others.values = map[any]any{}
	}
	others.values[key] = value
	return value, nil
}

// dropValues forgets the values of a record that the history may keep. r may be nil.
func (r *Record) dropValues() {
	if r == nil {
		return
	}
	if others := r.other.Load(); others != nil {
		others.mu.Lock()
		defer others.mu.Unlock()
		others.values = nil
	}
}

// TreeIn decodes the record in a served version, without kind and apiVersion. A record that cannot be converted has the
// form in which it is stored. The caller owns the result.
func (r *Record) TreeIn(served string) object.Tree {
	converted, err := r.In(r.def, served)
	if err != nil {
		return r.Tree()
	}
	return converted.Tree()
}
