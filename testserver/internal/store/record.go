package store

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Record is one version of one object. It is encoded once, when it is written, without kind and apiVersion, because
// these depend on the version that a client requests. The metadata come first, so that they can be sent alone. A record
// never changes.
type Record struct {
	Path          string // "namespace/name", or "name"; lists are sorted by it
	Key           api.Key
	UID           types.UID
	Version       uint64
	labels        map[string]string
	fields        []registry.FieldValue // values for field selectors, except name and namespace
	HasFinalizers bool
	Deleting      bool // has a deletionTimestamp

	body    []byte // {"metadata":{…},…}
	metaEnd int    // the metadata are body[metaStart:metaEnd]
	digits  span   // the resource version in body
	managed span   // `,"managedFields":…` in body, or empty

	other *variants // nil without a Schema
}

// span is a part of a byte slice.
type span struct{ start, end int }

const metaStart = len(`{"metadata":`)

// metadataOrder is the order in which kube-apiserver writes the metadata of built-in types. managedFields come last.
// The metadata of custom resources are sorted.
var metadataOrder = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
}

// newRecord encodes tree as the given version of an object. The tree must be validated: its metadata are an object with
// values of the right types. The caller may change the tree afterwards.
func NewRecord(d *registry.Definition, tree object.Tree, version uint64) (*Record, error) {
	meta := object.Metadata(tree)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	if version == 0 {
		delete(meta, "resourceVersion") // an object that a dry run creates has no version
	}
	r := &Record{
		Key:           api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")},
		UID:           types.UID(object.StringAt(meta, "uid")),
		Version:       version,
		labels:        object.Labels(meta),
		HasFinalizers: len(object.SliceAt(meta, "finalizers")) > 0,
		Deleting:      object.StringAt(meta, "deletionTimestamp") != "",
	}
	r.Path = pathOf(r.Key)
	if d.Fields != nil {
		r.fields = d.Fields(tree)
	}
	if d.Schema != nil {
		r.other = newVariants(d, tree)
	}
	if err := r.encode(d, tree, meta); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Record) encode(d *registry.Definition, tree, meta object.Tree) error {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out, e.err = e.out[:0], nil
	e.raw(`{"metadata":{`)
	for name := range e.sorted(meta, metadataOrderOf(d)) {
		before := len(e.out)
		e.member(name, meta[name])
		switch name {
		case "resourceVersion":
			end := len(e.out) - 1
			r.digits = span{end - len(object.StringAt(meta, name)), end}
		case "managedFields": // never the first field
			r.managed = span{before, len(e.out)}
		}
	}
	e.raw("}")
	r.metaEnd = len(e.out)
	if r.managed.end == 0 {
		r.managed = span{r.metaEnd, r.metaEnd}
	}
	for name := range e.sorted(tree, strings.Compare) {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			e.raw(",")
			e.first = true
			e.member(name, tree[name])
		}
	}
	e.raw("}")
	if e.err != nil {
		return fmt.Errorf("testserver: encode %s: %w", r.Path, e.err)
	}
	r.body = bytes.Clone(e.out) // no byte more, because the server may hold many
	return nil
}

// metadataOrderOf returns the order in which the metadata of a resource are encoded.
func metadataOrderOf(d *registry.Definition) func(a, b string) int {
	if d.Custom {
		return strings.Compare
	}
	return func(a, b string) int { return cmp.Or(metadataPosition(a)-metadataPosition(b), strings.Compare(a, b)) }
}

func metadataPosition(name string) int {
	if i := slices.Index(metadataOrder, name); i >= 0 {
		return i
	}
	if name == "managedFields" {
		return len(metadataOrder) + 1
	}
	return len(metadataOrder)
}

// Tree decodes the record without kind and apiVersion. The caller owns the result. A custom resource with a Schema has
// an apiVersion: the one in which it is stored.
func (r *Record) Tree() object.Tree {
	tree, err := object.Decode(r.body)
	if err != nil {
		panic(fmt.Sprintf("testserver: decode a record that this server encoded: %v", err))
	}
	if r.other != nil && r.other.def.FromCRD {
		tree["apiVersion"] = r.other.def.In(r.other.version).GroupVersion().String()
	}
	return tree
}

// AppendMetadata appends the metadata in JSON; if withoutManaged, without managedFields.
func (r *Record) AppendMetadata(dst []byte, withoutManaged bool) []byte {
	if withoutManaged {
		return append(append(dst, r.body[metaStart:r.managed.start]...), r.body[r.managed.end:r.metaEnd]...)
	}
	return append(dst, r.body[metaStart:r.metaEnd]...)
}

// AppendMembers appends the object in JSON without its opening brace and without kind and apiVersion; if
// withoutManaged, without managedFields. The metadata come first.
func (r *Record) AppendMembers(dst []byte, withoutManaged bool) []byte {
	dst = append(dst, r.body[1:metaStart]...)
	return append(r.AppendMetadata(dst, withoutManaged), r.body[r.metaEnd:]...)
}

// Equal reports whether two records have the same contents and the same version.
func (r *Record) Equal(o *Record) bool { return bytes.Equal(r.body, o.body) }

// Size returns the number of bytes of the object in JSON.
func (r *Record) Size() int { return len(r.body) }

// maxSize is the size in bytes of the largest request that etcd accepts with default settings.
const maxSize = 3 << 19

// errTooLarge is the answer to an object that does not fit into a request to etcd. It has no reason in kube-apiserver.
var errTooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large",
}}

// fits reports whether an object that is too large in JSON fits into etcd. kube-apiserver stores built-in resources in
// protobuf, except definitions.
func (r *Record) fits() bool {
	if r.other == nil || r.other.def.Custom || r.other.def.IsCRD() {
		return false
	}
	d := r.other.def
	tree, err := d.Schema.Convert(d.Version, r.Tree())
	if err != nil {
		return false
	}
	encoded, err := d.Schema.Encode("application/vnd.kubernetes.protobuf", tree)
	return err == nil && len(encoded) <= maxSize
}

// ResourceVersion returns the version in the metadata. An object that a dry run created has no version.
func (r *Record) ResourceVersion() string { return string(r.body[r.digits.start:r.digits.end]) }

// At returns a copy of the record with another version. A DELETED event carries the version of the delete.
func (r *Record) At(version uint64) *Record {
	digits := strconv.FormatUint(version, 10)
	moved := *r
	moved.Version = version
	if r.other != nil {
		moved.other = &variants{def: r.other.def, version: r.other.version}
	}
	moved.body = slices.Concat(r.body[:r.digits.start], []byte(digits), r.body[r.digits.end:])
	shift := len(digits) - (r.digits.end - r.digits.start)
	moved.digits.end += shift
	moved.metaEnd += shift
	if r.managed.start >= r.digits.end {
		moved.managed.start += shift
		moved.managed.end += shift
	}
	return &moved
}

// pathOf returns the sort key of an object in lists. The order is that of the keys of kube-apiserver in etcd.
func pathOf(k api.Key) string { return api.FormatKey(k) }
