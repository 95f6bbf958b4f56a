package wire

import (
	"bytes"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/testserver/internal/store"
)

// AppendEvent appends the event of an object.
func (s Shape) AppendEvent(dst []byte, kind watch.EventType, r *store.Record) []byte {
	dst = append(append(append(dst, `{"type":"`...), kind...), `","object":`...)
	return append(s.AppendObject(dst, r), "}\n"...)
}

// AppendBookmark appends a bookmark with a version. end marks the bookmark that ends an initial list.
func (s Shape) AppendBookmark(dst []byte, version uint64, end bool) []byte {
	metadata := `{"resourceVersion":"` + strconv.FormatUint(version, 10) + `"`
	if end {
		metadata += `,"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}`
	}
	metadata += "}"
	dst = append(dst, `{"type":"BOOKMARK","object":`...)
	if s.As == Table {
		return append(s.appendBookmarkTable(dst, version, metadata), "}\n"...)
	}
	dst = append(append(s.appendKind(dst), `,"metadata":`...), metadata...)
	return append(dst, "}}\n"...)
}

// AppendErrorEvent appends an ERROR event.
func AppendErrorEvent(dst []byte, status metav1.Status) []byte {
	dst = append(append(dst, `{"type":"ERROR","object":`...), EncodeStatus(status)...)
	return append(dst, "}\n"...)
}

// ObjectOf returns the object in a frame: its JSON, or its message in protobuf.
func (s Shape) ObjectOf(frame []byte) []byte {
	if s.Type == Protobuf {
		_, object := parseFrame(frame)
		return object.Raw
	}
	return bytes.TrimSuffix(frame[objectStart(frame):], []byte(frameEnd))
}

// ReplaceObject returns a copy of a frame with another object, in the form of ObjectOf.
func (s Shape) ReplaceObject(frame, object []byte) []byte {
	if s.Type == Protobuf {
		event, old := parseFrame(frame)
		return protobufFrame(watch.EventType(event.Type), envelope(old.APIVersion, old.Kind, object))
	}
	return append(append(bytes.Clone(frame[:objectStart(frame)]), object...), frameEnd...)
}

const frameEnd = "}\n"

// objectStart returns the index of the object in a frame.
func objectStart(frame []byte) int {
	const mark = `,"object":`
	return bytes.Index(frame, []byte(mark)) + len(mark)
}
