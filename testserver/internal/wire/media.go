package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// The media types of bodies and answers. Every resource has JSON and YAML; those with types may have protobuf.
const (
	JSON     = "application/json"
	YAML     = "application/yaml"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// protobufMagic begins every message, except the frames of a watch.
var protobufMagic = []byte("k8s\x00")

// envelope returns a message as kube-apiserver sends it: the magic number, and a runtime.Unknown with kind and version.
func envelope(apiVersion, kind string, message []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	encoded, err := unknown.Marshal()
	if err != nil {
		panic(fmt.Sprintf("testserver: encode an envelope: %v", err)) // only strings and bytes
	}
	return append(bytes.Clone(protobufMagic), encoded...)
}

// opened returns the content of an envelope.
func opened(envelope []byte) (runtime.Unknown, error) {
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(bytes.TrimPrefix(envelope, protobufMagic)); err != nil {
		return unknown, fmt.Errorf("testserver: decode protobuf: %w", err)
	}
	return unknown, nil
}

// Object appends one object in the media type of the request.
func (s Shape) Object(dst []byte, r *store.Record) ([]byte, error) {
	if err := s.Check(r); err != nil {
		return dst, err
	}
	if s.Type == Protobuf {
		encoded, err := s.protobuf(r)
		return append(dst, encoded...), err
	}
	const kind = 128 // bytes that kind, version and the line break take
	start := len(dst)
	dst = append(s.AppendObject(slices.Grow(dst, r.Size()+kind), r), '\n')
	if s.Type == YAML {
		encoded, err := yaml.JSONToYAML(dst[start:])
		return append(dst[:start], encoded...), err
	}
	return dst, nil
}

// EncodeTree encodes an object that is not stored, with kind and apiVersion, its metadata, or its table.
func (m Media) EncodeTree(d *registry.Definition, c registry.Columns, tree object.Tree) ([]byte, error) {
	switch {
	case m.As == Table:
		var err error
		if tree, err = m.treeTable(c, tree); err != nil {
			return nil, err
		}
	case m.As != "":
		tree = object.Tree{"kind": partialObject, "apiVersion": m.metaVersion(), "metadata": object.Metadata(tree)}
	}
	if m.Type == Protobuf {
		return d.Schema.Encode(Protobuf, tree)
	}
	encoded, err := json.Marshal(tree)
	if err == nil && m.Type == YAML {
		return yaml.JSONToYAML(encoded)
	}
	return append(encoded, '\n'), err
}

// Document is a document of discovery.
type Document interface {
	GetObjectKind() schema.ObjectKind
	// Marshal encodes the document as protobuf without its kind.
	Marshal() ([]byte, error)
}

// EncodeDocument encodes a document in a media type.
func EncodeDocument(mediaType string, d Document) ([]byte, error) {
	if mediaType == Protobuf {
		encoded, err := d.Marshal()
		if err != nil {
			return nil, fmt.Errorf("testserver: encode a document: %w", err)
		}
		version, kind := d.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		return envelope(version, kind, encoded), nil
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("testserver: encode a document: %w", err)
	}
	return FromJSON(mediaType, append(encoded, '\n'))
}

// FromJSON converts JSON to a media type, which is JSON or YAML.
func FromJSON(mediaType string, encoded []byte) ([]byte, error) {
	if mediaType == YAML {
		return yaml.JSONToYAML(encoded)
	}
	return encoded, nil
}

// protobuf encodes one object, or its metadata, in an envelope. Whole objects are encoded once per version.
func (s Shape) protobuf(r *store.Record) ([]byte, error) {
	if s.As == "" {
		name := s.resource.GroupVersion().String() + " " + Protobuf
		if s.dropManaged {
			name += " without managedFields"
		}
		return r.Encoded(name, func() ([]byte, error) {
			tree := s.Tree(r)
			if s.dropManaged {
				delete(object.Metadata(tree), "managedFields")
			}
			return s.def.Schema.Encode(Protobuf, tree)
		})
	}
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.AppendMetadata(nil, s.dropManaged), &partial.ObjectMeta); err != nil {
		return nil, fmt.Errorf("testserver: decode metadata: %w", err)
	}
	encoded, err := partial.Marshal()
	if err != nil {
		return nil, fmt.Errorf("testserver: encode metadata: %w", err)
	}
	return envelope(s.apiVersion(), s.kind(), encoded), nil
}

// Tree returns an object in the version of the request, with kind and apiVersion. The caller owns the result.
func (s Shape) Tree(r *store.Record) object.Tree {
	tree := s.in(r).Tree()
	tree["kind"], tree["apiVersion"] = s.resource.Kind, s.resource.GroupVersion().String()
	return tree
}

// Item encodes an item of a list that List gets: as a message of protobuf without an envelope, or as JSON.
func (s Shape) Item(r *store.Record) ([]byte, error) {
	if s.Type != Protobuf {
		return s.AppendItem(nil, r), s.Check(r)
	}
	encoded, err := s.protobuf(r)
	if err != nil {
		return nil, err
	}
	unknown, err := opened(encoded)
	return unknown.Raw, err
}

// List encodes a whole list of items as protobuf or YAML. A fault may have made the items malformed.
func (s Shape) List(meta metav1.ListMeta, items [][]byte) ([]byte, error) {
	if s.Type == Protobuf {
		return s.protobufList(meta, items)
	}
	out, tail, err := s.ListParts(meta)
	if err != nil {
		return nil, fmt.Errorf("testserver: encode the metadata of a list: %w", err)
	}
	out = append(append(out, bytes.Join(items, []byte(","))...), tail...)
	if converted, err := yaml.JSONToYAML(out); err == nil {
		return converted, nil
	}
	return out, nil // malformed JSON is malformed YAML
}

func (s Shape) protobufList(meta metav1.ListMeta, items [][]byte) ([]byte, error) {
	head, err := meta.Marshal()
	if err != nil {
		return nil, fmt.Errorf("testserver: encode the metadata of a list: %w", err)
	}
	out := appendField(nil, 1, head)
	for _, item := range items {
		out = appendField(out, 2, item)
	}
	return envelope(s.apiVersion(), s.listKind(), out), nil
}

// appendField appends a field of bytes to a protobuf message.
func appendField(dst []byte, number byte, value []byte) []byte {
	const lengthDelimited = 2
	dst = append(dst, number<<3|lengthDelimited)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// frameLength is the number of bytes that hold the length of a protobuf frame.
const frameLength = 4

// protobufFrame encodes an event: its length in four bytes, and a WatchEvent whose object has an envelope.
func protobufFrame(kind watch.EventType, envelope []byte) []byte {
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: envelope}}
	encoded, err := event.Marshal()
	if err != nil {
		panic(fmt.Sprintf("testserver: encode an event: %v", err)) // only its strings and bytes
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}

// parseFrame returns the event in a frame that protobufFrame returned, and its object.
func parseFrame(frame []byte) (event metav1.WatchEvent, object runtime.Unknown) {
	err := event.Unmarshal(frame[frameLength:])
	if err == nil {
		object, err = opened(event.Object.Raw)
	}
	if err != nil {
		panic(fmt.Sprintf("testserver: decode an event that this server encoded: %v", err))
	}
	return event, object
}

// Event encodes the event of an object in the media type of the request. An object that cannot be encoded is an ERROR.
func (s Shape) Event(dst []byte, kind watch.EventType, r *store.Record) []byte {
	if err := s.Check(r); err != nil {
		return append(dst, s.ErrorEvent(StatusOf(err))...)
	}
	if s.Type != Protobuf {
		return s.AppendEvent(dst, kind, r)
	}
	encoded, err := s.protobuf(r)
	if err != nil {
		return append(dst, s.ErrorEvent(StatusOf(err))...)
	}
	return append(dst, protobufFrame(kind, encoded)...)
}

// Bookmark encodes a bookmark in the media type of the request.
func (s Shape) Bookmark(dst []byte, version uint64, end bool) []byte {
	if s.Type != Protobuf {
		return s.AppendBookmark(dst, version, end)
	}
	meta := metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}
	if end {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	partial := metav1.PartialObjectMetadata{ObjectMeta: meta} // metadata are field 1 of every type
	encoded, err := partial.Marshal()
	if err != nil {
		return append(dst, s.ErrorEvent(StatusOf(err))...)
	}
	return append(dst, protobufFrame(watch.Bookmark, envelope(s.apiVersion(), s.kind(), encoded))...)
}

// ErrorEvent encodes an ERROR event in the media type of the request.
func (s Shape) ErrorEvent(status metav1.Status) []byte {
	if s.Type != Protobuf {
		return AppendErrorEvent(nil, status)
	}
	return protobufFrame(watch.Error, protobufStatus(status))
}

func protobufStatus(status metav1.Status) []byte {
	status.TypeMeta = metav1.TypeMeta{}
	encoded, err := status.Marshal()
	if err != nil {
		panic(fmt.Sprintf("testserver: encode a Status: %v", err)) // only strings and numbers
	}
	return envelope("v1", "Status", encoded)
}
