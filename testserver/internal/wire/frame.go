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
	dst = append(dst, `{"type":"BOOKMARK","object":`...)
	dst = append(s.appendKind(dst), `,"metadata":{"resourceVersion":"`...)
	dst = append(strconv.AppendUint(dst, version, 10), '"')
	if end {
		dst = append(dst, `,"annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}`...)
	}
	return append(dst, "}}}\n"...)
}

// AppendErrorEvent appends an ERROR event.
func AppendErrorEvent(dst []byte, status metav1.Status) []byte {
	dst = append(append(dst, `{"type":"ERROR","object":`...), EncodeStatus(status)...)
	return append(dst, "}\n"...)
}

// ObjectOf returns the object in a frame.
func ObjectOf(frame []byte) []byte {
	return bytes.TrimSuffix(frame[objectStart(frame):], []byte(frameEnd))
}

// ReplaceObject returns a copy of a frame with another object.
func ReplaceObject(frame, object []byte) []byte {
	return append(append(bytes.Clone(frame[:objectStart(frame)]), object...), frameEnd...)
}

const frameEnd = "}\n"

// objectStart returns the index of the object in a frame.
func objectStart(frame []byte) int {
	const mark = `,"object":`
	return bytes.Index(frame, []byte(mark)) + len(mark)
}
