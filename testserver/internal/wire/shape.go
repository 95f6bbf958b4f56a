package wire

import (
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Shape encodes records for one request.
type Shape struct {
	Media
	def      *registry.Definition
	resource api.Resource
	custom   bool
}

// NewShape returns the encoding of objects of a resource, in a version, as a representation.
func NewShape(m Media, d *registry.Definition, served string) Shape {
	return Shape{Media: m, def: d, resource: d.In(served), custom: d.Custom}
}

// Check returns an error if a record cannot be converted to the version of the request. Afterwards, the record can be
// encoded.
func (s Shape) Check(r *store.Record) error {
	_, err := r.In(s.def, s.resource.Version)
	return err
}

// in returns a record in the version of the request. A record that cannot be converted stays as it is stored.
func (s Shape) in(r *store.Record) *store.Record {
	converted, err := r.In(s.def, s.resource.Version)
	if err != nil {
		return r
	}
	return converted
}

// appendPartial appends the beginning of an object that has only metadata.
func (s Shape) appendPartial(dst []byte) []byte {
	dst = append(append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...), s.Version...)
	return append(dst, `","metadata":`...)
}

// AppendObject appends a whole object, its metadata, or a table with one row.
func (s Shape) AppendObject(dst []byte, r *store.Record) []byte {
	if s.As == Table {
		return s.appendTable(dst, r)
	}
	if s.As != "" {
		return append(r.AppendMetadata(s.appendPartial(dst), s.dropManaged), '}')
	}
	return s.in(r).AppendMembers(append(s.appendKind(dst), ','), s.dropManaged)
}

// appendKind appends the opening brace, kind and apiVersion.
func (s Shape) appendKind(dst []byte) []byte {
	if s.custom && s.As == "" { // the keys of custom resources are sorted
		dst = append(dst, `{"apiVersion":`...)
		dst = strconv.AppendQuote(dst, s.apiVersion())
		dst = append(dst, `,"kind":`...)
		return strconv.AppendQuote(dst, s.kind())
	}
	dst = append(dst, `{"kind":`...)
	dst = strconv.AppendQuote(dst, s.kind())
	dst = append(dst, `,"apiVersion":`...)
	return strconv.AppendQuote(dst, s.apiVersion())
}

func (s Shape) kind() string {
	if s.As != "" {
		return partialObject
	}
	return s.resource.Kind
}

// listKind returns the kind of a list.
func (s Shape) listKind() string {
	if s.As != "" {
		return PartialList
	}
	return s.def.ListKindName()
}

func (s Shape) apiVersion() string {
	if s.As != "" {
		return s.metaVersion()
	}
	return s.resource.GroupVersion().String()
}

// AppendItem appends an item of a list. Items of built-in types have no kind and apiVersion, as in kube-apiserver.
func (s Shape) AppendItem(dst []byte, r *store.Record) []byte {
	if s.As == Table {
		return s.appendRow(dst, r)
	}
	if s.As != "" || s.custom {
		return s.AppendObject(dst, r)
	}
	return s.in(r).AppendMembers(append(dst, '{'), s.dropManaged)
}

// ListParts returns the JSON before and after the items of a list. The keys of custom resources are sorted, so a client
// gets the kind and the version only after the last item.
func (s Shape) ListParts(meta metav1.ListMeta) (head, tail []byte, err error) {
	if s.As == Table {
		return s.table(meta)
	}
	if s.custom && s.As == "" {
		members := object.Tree{"continue": meta.Continue, "resourceVersion": meta.ResourceVersion}
		if meta.RemainingItemCount != nil {
			members["remainingItemCount"] = *meta.RemainingItemCount
		}
		encoded, err := json.Marshal(members)
		head = append(strconv.AppendQuote([]byte(`{"apiVersion":`), s.apiVersion()), `,"items":[`...)
		tail = append(strconv.AppendQuote([]byte(`],"kind":`), s.listKind()), `,"metadata":`...)
		return head, append(append(tail, encoded...), "}\n"...), err
	}
	encoded, err := json.Marshal(meta)
	head = strconv.AppendQuote([]byte(`{"kind":`), s.listKind())
	head = strconv.AppendQuote(append(head, `,"apiVersion":`...), s.apiVersion())
	head = append(append(append(head, `,"metadata":`...), encoded...), `,"items":[`...)
	return head, []byte("]}\n"), err
}
