package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
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
// these depend on the version that a client requests. The metadata come first, so that they can be sent alone. A stored
// record never changes.
type Record struct {
	content
	other atomic.Pointer[variants] // nil until a client asks for another encoding
}

// content is what copies of a record have in common. A server may hold many records, so parts share their memory.
type content struct {
	Path   string  // "namespace/name", or "name"; lists are sorted by it
	Key    api.Key // parts of Path
	uid    span    // of meta
	digits span    // the resource version in meta

	meta      string // {"metadata":{…} without managedFields
	managed   string // `,"managedFields":…`, or empty
	rest      string // the other members, with the end of the object: ,"spec":{…}}
	def       *registry.Definition
	managedAt int32 // the place of managed in meta

	HasFinalizers bool
	Deleting      bool // has a deletionTimestamp
	owned         bool // has ownerReferences
	Version       uint64
	labels        map[string]string
	fields        []registry.FieldValue // values for field selectors, except name and namespace
	stored        string                // the version of the API in which the record is stored
}

// span is a part of a string.
type span struct{ start, end int32 }

func (s span) of(text string) string { return text[s.start:s.end] }

// moved returns the span after another span, which ended at a place, has become longer by shift.
func (s span) moved(end, shift int32) span {
	if s.start < end {
		return s
	}
	return span{s.start + shift, s.end + shift}
}

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
		owned:         len(object.SliceAt(meta, "ownerReferences")) > 0,
		def:           d,
		stored:        storedVersion(d, tree),
	}}
	r.Key = api.Key{Namespace: r.Path[:len(key.Namespace)], Name: r.Path[len(r.Path)-len(key.Name):]}
	if d.Fields != nil {
		r.fields = d.Fields(tree)
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	if err := e.record(r, tree, meta); err != nil {
		return nil, err
	}
	return r, nil
}

// record encodes the texts of a record.
func (e *encoder) record(r *Record, tree, meta object.Tree) error {
	e.out, e.err = e.out[:0], nil
	e.raw(`{"metadata":{`)
	first := len(e.out)
	for name := range e.sorted(meta, metadataOrderOf(r.def)) {
		before := len(e.out)
		e.member(name, meta[name])
		switch {
		case name == "resourceVersion":
			r.digits = e.lastText(before)
		case name == "uid" && object.StringAt(meta, name) != "":
			r.uid = e.lastText(before)
		case name == "managedFields" && before > first: // always, except in a state that somebody has written
			r.managed, r.managedAt = e.shared(e.out[before:]), int32(before)
			e.out = e.out[:before]
		}
	}
	e.raw("}")
	end := len(e.out)
	if r.managed == "" {
		r.managedAt = int32(end)
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
	r.meta = string(e.out[:end]) // no byte more, because the server may hold many
	r.rest = e.shared(e.out[end:])
	return nil
}

// lastText returns the place of the text that is the value of the last member, which begins at a given place.
func (e *encoder) lastText(member int) span {
	text := member + bytes.IndexByte(e.out[member:], ':') + len(`:"`)
	return span{int32(text), int32(len(e.out) - len(`"`))}
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

// Tree decodes the record without kind and apiVersion. The caller owns the result. A resource of a
// CustomResourceDefinition has an apiVersion: the one in which it is stored.
func (r *Record) Tree() object.Tree {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out = r.AppendMembers(append(e.out[:0], '{'), false)
	tree, err := object.Decode(e.out)
	if err != nil {
		panic(fmt.Sprintf("testserver: decode a record that this server encoded: %v", err))
	}
	if r.def.FromCRD {
		tree["apiVersion"] = r.def.In(r.stored).GroupVersion().String()
	}
	return tree
}

// AppendMetadata appends the metadata in JSON; if withoutManaged, without managedFields.
func (r *Record) AppendMetadata(dst []byte, withoutManaged bool) []byte {
	return r.appendMeta(dst, metaStart, withoutManaged)
}

// AppendMembers appends the object in JSON without its opening brace and without kind and apiVersion; if
// withoutManaged, without managedFields. The metadata come first.
func (r *Record) AppendMembers(dst []byte, withoutManaged bool) []byte {
	return append(r.appendMeta(dst, 1, withoutManaged), r.rest...)
}

// appendMeta appends meta from a place on, which is not after managedFields.
func (r *Record) appendMeta(dst []byte, from int, withoutManaged bool) []byte {
	if withoutManaged {
		return append(dst, r.meta[from:]...)
	}
	at := int(r.managedAt)
	return append(append(append(dst, r.meta[from:at]...), r.managed...), r.meta[at:]...)
}

// Equal reports whether two records have the same contents and the same version.
func (r *Record) Equal(o *Record) bool {
	return r.meta == o.meta && r.rest == o.rest && r.managed == o.managed && (r.managedAt == o.managedAt || r.managed == "")
}

// EqualContents reports whether two records of one version differ at most in the times of managedFields.
func (r *Record) EqualContents(o *Record) bool {
	if r.Equal(o) {
		return true
	}
	return r.meta == o.meta && r.rest == o.rest && r.managedAt == o.managedAt &&
		managedTime.ReplaceAllString(r.managed, "") == managedTime.ReplaceAllString(o.managed, "")
}

// managedTime is the time of an entry of managedFields. A field with this name has an object as its value.
var managedTime = regexp.MustCompile(`"time":"[^"]*"`)

// share makes the record use the texts of an earlier version of the object, where they are the same. Many writes change
// only metadata, and many leave managedFields as they are.
func (r *Record) share(with *Record) {
	if r.rest == with.rest {
		r.rest = with.rest
	}
	if r.managed == with.managed {
		r.managed = with.managed
	}
}

// Size returns the number of bytes of the object in JSON.
func (r *Record) Size() int { return len(r.meta) + len(r.managed) + len(r.rest) }

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
	if d.Untyped || d.Custom || d.IsCRD() {
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
func (r *Record) ResourceVersion() string { return r.digits.of(r.meta) }

// UID returns the UID in the metadata. It keeps the text of the metadata in memory.
func (r *Record) UID() types.UID {
	uid := r.uid.of(r.meta)
	if strings.IndexByte(uid, '\\') < 0 {
		return types.UID(uid)
	}
	var decoded types.UID // this server makes no UIDs with escapes, but a state that it loads may have some
	if err := json.Unmarshal([]byte(`"`+uid+`"`), &decoded); err != nil {
		panic(fmt.Sprintf("testserver: decode a UID that this server encoded: %v", err))
	}
	return decoded
}

// At returns a copy of the record with another version. A DELETED event carries the version of the delete.
func (r *Record) At(version uint64) *Record {
	digits := strconv.FormatUint(version, 10)
	at, shift := r.digits.end, int32(len(digits))-(r.digits.end-r.digits.start)
	moved := &Record{content: r.content}
	moved.Version = version
	moved.meta = r.meta[:r.digits.start] + digits + r.meta[at:]
	moved.digits.end += shift
	moved.uid = r.uid.moved(at, shift)
	if r.managedAt >= at {
		moved.managedAt += shift
	}
	return moved
}

// pathOf returns the sort key of an object in lists. The order is that of the keys of kube-apiserver in etcd.
func pathOf(k api.Key) string { return api.FormatKey(k) }
