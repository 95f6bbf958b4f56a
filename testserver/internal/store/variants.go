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
	def     *registry.Definition // of the resource when the record was made
	version string               // of the API in which the record is stored

	mu      sync.Mutex           // guards the fields below
	under   *registry.Definition // of the resource when they were made
	records map[string]*Record
	encoded map[string][]byte
}

// newVariants returns the variants of a record in the form of tree. Only custom resources may be stored in another
// version than that of their definition: the definition has changed since the object was written.
func newVariants(d *registry.Definition, tree object.Tree) *variants {
	v := &variants{def: d, version: d.Stored()}
	if _, version, ok := strings.Cut(object.StringAt(tree, "apiVersion"), "/"); ok && d.FromCRD {
		v.version = version
	}
	return v
}

// In returns the record in a served version of a resource with a Schema, by the present rules of the resource. The
// record itself is the result if it has this form.
func (r *Record) In(d *registry.Definition, served string) (*Record, error) {
	if r.other.def == d && r.other.version == served && d.Alias.Resource == "" {
		return r, nil
	}
	if known := r.other.record(d, served); known != nil {
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
	return r.other.keep(d, served, converted), nil
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
	r.other.mu.Lock()
	known := r.other.encoded[name]
	r.other.mu.Unlock()
	if known != nil {
		return known, nil
	}
	encoded, err := make()
	if err != nil {
		return nil, err
	}
	r.other.mu.Lock()
	defer r.other.mu.Unlock()
	if r.other.encoded == nil {
		r.other.encoded = map[string][]byte{}
	}
	r.other.encoded[name] = encoded
	return encoded, nil
}

// TreeIn decodes the record in a served version, without kind and apiVersion. A record that cannot be converted has the
// form in which it is stored. The caller owns the result.
func (r *Record) TreeIn(served string) object.Tree {
	if r.other == nil {
		return r.Tree()
	}
	converted, err := r.In(r.other.def, served)
	if err != nil {
		return r.Tree()
	}
	return converted.Tree()
}
