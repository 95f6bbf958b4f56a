package store

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

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
	content
	other atomic.Pointer[variants] // nil until a client asks for another encoding
}

// content is what copies of a record have in common. A server may hold many records, so parts share their memory. Lists
// read the fields from body to def, which are in one line of the processor's cache.
type content struct {
	Path string    // "namespace/name", or "name"; lists are sorted by it
	Key  api.Key   // parts of Path
	UID  types.UID // part of body

	body      string // {"metadata":{…},…} without managedFields
	managed   string // `,"managedFields":…`, or empty; objects that were written alike share it
	managedAt int32  // the place of managed in body
	metaEnd   int32  // the metadata are body[metaStart:metaEnd]
	digits    span   // the resource version in body
	def       *registry.Definition

	Version       uint64
	labels        map[string]string
	fields        []registry.FieldValue // values for field selectors, except name and namespace
	stored        string                // the version of the API in which the record is stored, with a Schema
	HasFinalizers bool
	Deleting      bool // has a deletionTimestamp
}

// span is a part of a string.
type span struct{ start, end int32 }

const metaStart = len(`{"metadata":`)

// metadataOrder is the order in which kube-apiserver writes the metadata of built-in types. managedFields come last.
// The metadata of custom resources are sorted.
var metadataOrder = []string{
	"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
}

// NewRecord encodes tree as the given version of an object. The tree must be validated: its metadata are an object with
// values of the right types. The caller may change the tree afterwards.
func NewRecord(d *registry.Definition, tree object.Tree, version uint64) (*Record, error) {
	meta := object.Metadata(tree)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	if version == 0 {
		delete(meta, "resourceVersion") // an object that a dry run creates has no version
	}
	key := api.Key{Namespace: object.StringAt(meta, "namespace"), Name: object.StringAt(meta, "name")}
	r := &Record{content: content{
		Path:          pathOf(key),
		Version:       version,
		labels:        object.Labels(meta),
		HasFinalizers: len(object.SliceAt(meta, "finalizers")) > 0,
		Deleting:      object.StringAt(meta, "deletionTimestamp") != "",
		def:           d,
	}}
	r.Key = api.Key{Namespace: r.Path[:len(key.Namespace)], Name: r.Path[len(r.Path)-len(key.Name):]}
	if d.Fields != nil {
		r.fields = d.Fields(tree)
	}
	if d.Schema != nil {
		r.stored = storedVersion(d, tree)
	}
	if err := r.encode(tree, meta); err != nil {
		return nil, err
	}
	r.UID = types.UID(partOf(r.body, object.StringAt(meta, "uid")))
	return r, nil
}

// partOf returns text, which shares its memory with whole if it occurs there.
func partOf(whole, text string) string {
	if at := strings.Index(whole, text); at >= 0 {
		return whole[at : at+len(text)]
	}
	return strings.Clone(text)
}

func (r *Record) encode(tree, meta object.Tree) error {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out, e.err = e.out[:0], nil
	e.raw(`{"metadata":{`)
	first := len(e.out)
	for name := range e.sorted(meta, metadataOrderOf(r.def)) {
		before := len(e.out)
		e.member(name, meta[name])
		switch {
		case name == "resourceVersion":
			end := len(e.out) - 1
			r.digits = span{int32(end - len(object.StringAt(meta, name))), int32(end)}
		case name == "managedFields" && before > first: // always, except in a state that somebody has written
			r.managed, r.managedAt = e.shared(e.out[before:]), int32(before)
			e.out = e.out[:before]
		}
	}
	e.raw("}")
	r.metaEnd = int32(len(e.out))
	if r.managed == "" {
		r.managedAt = r.metaEnd
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
	r.body = string(e.out) // no byte more, because the server may hold many
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
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out = r.AppendMembers(append(e.out[:0], '{'), false)
	tree, err := object.Decode(e.out)
	if err != nil {
		panic(fmt.Sprintf("testserver: decode a record that this server encoded: %v", err))
	}
	if r.def.Schema != nil && r.def.FromCRD {
		tree["apiVersion"] = r.def.In(r.stored).GroupVersion().String()
	}
	return tree
}

// AppendMetadata appends the metadata in JSON; if withoutManaged, without managedFields.
func (r *Record) AppendMetadata(dst []byte, withoutManaged bool) []byte {
	return r.append(dst, metaStart, int(r.metaEnd), withoutManaged)
}

// AppendMembers appends the object in JSON without its opening brace and without kind and apiVersion; if
// withoutManaged, without managedFields. The metadata come first.
func (r *Record) AppendMembers(dst []byte, withoutManaged bool) []byte {
	return r.append(dst, 1, len(r.body), withoutManaged)
}

// append appends the body between two places, of which the first is not after managedFields.
func (r *Record) append(dst []byte, from, until int, withoutManaged bool) []byte {
	if withoutManaged {
		return append(dst, r.body[from:until]...)
	}
	at := int(r.managedAt)
	return append(append(append(dst, r.body[from:at]...), r.managed...), r.body[at:until]...)
}

// Fetch reads the memory of records, or only of their metadata, so that the processor has it when the next function
// needs it. The processor waits for many lines of memory at once, instead of for one after another: five lists of
// 10,000 objects of 1 KB take a third less time. The result has no meaning; without it, the compiler would leave the
// reads out.
//
//go:noinline
func Fetch(records []*Record, onlyMetadata bool) (sum int) {
	const line, most = 64, 2 << 10 // bytes; the processor finds the rest of a long text itself
	for _, r := range records {
		sum += int(r.metaEnd)
	}
	for _, r := range records {
		sum += int(r.body[0])
	}
	for _, r := range records {
		end := len(r.body)
		if onlyMetadata {
			end = int(r.metaEnd)
		}
		text := r.body[:min(end, most)]
		for ; len(text) >= 4*line; text = text[4*line:] { // with few instructions a line, more lines are under way
			sum += int(text[0]) + int(text[line]) + int(text[2*line]) + int(text[3*line])
		}
		for ; text != ""; text = text[min(line, len(text)):] {
			sum += int(text[0])
		}
	}
	return sum
}

// Equal reports whether two records have the same contents and the same version.
func (r *Record) Equal(o *Record) bool {
	return r.body == o.body && r.managed == o.managed && (r.managedAt == o.managedAt || r.managed == "")
}

// Size returns the number of bytes of the object in JSON.
func (r *Record) Size() int { return len(r.body) + len(r.managed) }

// maxSize is the size in bytes of the largest request that etcd accepts with default settings.
const maxSize = 3 << 19

// errTooLarge is the answer to an object that does not fit into a request to etcd. It has no reason in kube-apiserver.
var errTooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large",
}}

// fits reports whether an object that is too large in JSON fits into etcd. kube-apiserver stores built-in resources in
// protobuf, except definitions.
func (r *Record) fits() bool {
	d := r.def
	if d.Schema == nil || d.Custom || d.IsCRD() {
		return false
	}
	tree, err := d.Schema.Convert(d.Version, r.Tree())
	if err != nil {
		return false
	}
	encoded, err := d.Schema.Encode("application/vnd.kubernetes.protobuf", tree)
	return err == nil && len(encoded) <= maxSize
}

// ResourceVersion returns the version in the metadata. An object that a dry run created has no version.
func (r *Record) ResourceVersion() string { return r.body[r.digits.start:r.digits.end] }

// At returns a copy of the record with another version. A DELETED event carries the version of the delete.
func (r *Record) At(version uint64) *Record {
	digits := strconv.FormatUint(version, 10)
	moved := &Record{content: r.content}
	moved.Version = version
	moved.body = r.body[:r.digits.start] + digits + r.body[r.digits.end:]
	moved.UID = types.UID(partOf(moved.body, string(r.UID))) // that of r would keep its body in memory
	shift := int32(len(digits)) - (r.digits.end - r.digits.start)
	moved.digits.end += shift
	moved.metaEnd += shift
	if r.managedAt >= r.digits.end {
		moved.managedAt += shift
	}
	return moved
}

// pathOf returns the sort key of an object in lists. The order is that of the keys of kube-apiserver in etcd.
func pathOf(k api.Key) string { return api.FormatKey(k) }
