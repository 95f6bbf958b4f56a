package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// magic is the prefix of every message of Kubernetes' protobuf; a runtime.Unknown follows.
const magic = "k8s\x00"

// These are the fields of the messages that are read by hand, with the numbers of k8s.io/apimachinery's
// generated.proto.
const (
	unknownTypeMeta        = 1
	unknownRaw             = 2
	unknownContentEncoding = 3
	unknownContentType     = 4

	typeMetaAPIVersion = 1
	typeMetaKind       = 2

	listMetadata = 1
	listItems    = 2

	objectMetadata = 1 // in every kind

	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaAnnotations     = 12
	metaManagedFields   = 17

	eventType   = 1
	eventObject = 2

	rawExtensionRaw = 1
)

// envelope is a runtime.Unknown. Its slices alias the answer.
type envelope struct {
	apiVersion, kind, raw        []byte
	contentEncoding, contentType []byte
}

// open reads an envelope that is completely in memory.
func open(b []byte) (envelope, error) {
	var e envelope
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return e, errors.New("an object without the prefix of Kubernetes' protobuf")
	}
	for num, v := range lengthDelimited(b[len(magic):]) {
		if num == 0 {
			return e, fmt.Errorf("envelope: %w", errWire)
		}
		if err := e.set(num, v); err != nil {
			return e, err
		}
	}
	return e, e.check()
}

func (e *envelope) set(num protowire.Number, v []byte) error {
	switch num {
	case unknownTypeMeta:
		return e.setTypeMeta(v)
	case unknownRaw:
		e.raw = v
	case unknownContentEncoding:
		e.contentEncoding = v
	case unknownContentType:
		e.contentType = v
	}
	return nil
}

func (e *envelope) setTypeMeta(b []byte) error {
	for num, v := range lengthDelimited(b) {
		switch num {
		case 0:
			return fmt.Errorf("apiVersion and kind: %w", errWire)
		case typeMetaAPIVersion:
			e.apiVersion = v
		case typeMetaKind:
			e.kind = v
		}
	}
	return nil
}

// check rejects content that is not plain protobuf.
func (e *envelope) check() error {
	if len(e.contentEncoding) > 0 {
		return fmt.Errorf("an object in the content encoding %.64q", e.contentEncoding)
	}
	if len(e.contentType) > 0 && mediaOf(string(e.contentType)) != mediaProtobuf {
		return fmt.Errorf("an object of the content type %.64q inside protobuf", e.contentType)
	}
	return nil
}

var errWire = errors.New("bad wire format of protobuf")

// lengthDelimited iterates over the strings, bytes and messages of a message, and skips its numbers. If the wire format
// is broken, it yields the field number 0 and ends.
func lengthDelimited(b []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(b) > 0 {
			num, typ, n := consumeTag(b)
			if n < 0 {
				yield(0, nil)
				return
			}
			b = b[n:]
			if typ == protowire.BytesType {
				v, n := consumeBytes(b)
				if n < 0 {
					yield(0, nil)
					return
				}
				b = b[n:]
				if !yield(num, v) {
					return
				}
				continue
			}
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				yield(0, nil)
				return
			}
			b = b[n:]
		}
	}
}

// identifyProtobuf reads the metadata of the message in b without decoding the rest.
func identifyProtobuf(b []byte) identity {
	id := identity{certain: true}
	metadata, found := []byte(nil), false
	for num, v := range lengthDelimited(b) {
		switch num {
		case 0:
			id.certain = false
		case objectMetadata:
			id.certain = id.certain && !found
			metadata, found = v, true
		}
	}
	for num, v := range lengthDelimited(metadata) {
		switch num {
		case 0:
			id.certain = false
		case metaNamespace:
			id.namespace = v
		case metaName:
			id.name = v
		case metaUID:
			id.uid = v
		case metaResourceVersion:
			id.version = v
		}
	}
	return id
}

// protobufItem is jsonItem for the message of one object.
func (d *decoder[T]) protobufItem(e envelope, event watch.EventType) (obj T, version string, ok bool, err error) {
	if d.options.Known != nil {
		if obj, version, ok = d.reuse(identifyProtobuf(e.raw), event); ok {
			return obj, version, true, nil
		}
	}
	if err = d.check(e.apiVersion, e.kind); err == nil {
		obj, err = d.fromProtobuf(e.raw, d.options.DropManagedFields)
	}
	if err != nil {
		return obj, "", false, d.report(identifyProtobuf(e.raw), event, err)
	}
	if d.options.DropManagedFields && d.plan.wire == nil {
		clearManagedFields(obj)
	}
	if version = versionOf(obj); version == "" && event != "" {
		version = string(identifyProtobuf(e.raw).version)
	}
	return obj, version, true, nil
}

// fromProtobuf decodes the message of one object and sets apiVersion and kind, which a message does not contain.
func (d *decoder[T]) fromProtobuf(b []byte, drop bool) (obj T, err error) {
	d.wire.depth = 0
	d.wire.breaks.begin(b)
	if obj, err = d.plan.fromProtobuf(&d.wire, b, drop); err == nil {
		d.plan.complete(obj, d.apiVersion, d.kind, d.strict)
	}
	return obj, err
}

// protobufObject reads the only object of an answer.
func (d *decoder[T]) protobufObject() (obj T, err error) {
	b, err := d.window.all()
	if err != nil {
		return obj, err
	}
	e, err := open(b)
	if err != nil {
		return obj, malformed(0, "%w", err)
	}
	if !d.plan.status && isStatusKind(e.apiVersion, e.kind) {
		return obj, d.protobufStatus(e)
	}
	if err := d.check(e.apiVersion, e.kind); err != nil {
		return obj, err
	}
	if obj, err = d.fromProtobuf(e.raw, false); err != nil {
		err = d.failed(identifyProtobuf(e.raw), "", err)
	}
	return zeroUnless(obj, err)
}

// protobufStatus returns the error of a Status that was sent instead of the requested object.
func (d *decoder[T]) protobufStatus(e envelope) error {
	status := &metav1.Status{}
	if err := status.Unmarshal(e.raw); err != nil {
		return malformed(d.window.off, "status: %w", err)
	}
	return d.statusError(status, string(e.apiVersion))
}

// statusInside returns the Status in an envelope, or nil.
func statusInside(b []byte) *metav1.Status {
	e, err := open(b)
	status := &metav1.Status{}
	if err != nil || !isStatusKind(e.apiVersion, e.kind) || status.Unmarshal(e.raw) != nil {
		return nil
	}
	return status
}

// protobufFrame reads one frame of a stream: four bytes of length, and a WatchEvent.
func (d *decoder[T]) protobufFrame() (event api.Event[T], ok bool, err error) {
	w := d.window
	if w.hi == w.lo {
		if err := w.more(); err != nil {
			return event, false, err // also io.EOF: the stream ends between frames
		}
	}
	head, err := w.need(4)
	if err != nil {
		return event, false, err
	}
	n := binary.BigEndian.Uint32(head)
	if int64(n) > int64(w.limit) {
		return event, false, &TooLargeError{Limit: w.limit}
	}
	w.drop(4)
	frame, err := w.need(int(n))
	if err != nil {
		return event, false, err
	}
	event, ok, err = d.protobufEvent(frame)
	w.drop(int(n))
	return event, ok, err
}

// protobufEvent returns the event of a WatchEvent. If ok is false and err is nil, the event is skipped.
func (d *decoder[T]) protobufEvent(frame []byte) (event api.Event[T], ok bool, err error) {
	var name, object []byte
	for num, v := range lengthDelimited(frame) {
		switch num {
		case 0:
			return event, false, malformed(d.window.off, "watch event: %w", errWire)
		case eventType:
			name = v
		case eventObject:
			for num, v := range lengthDelimited(v) {
				if num == rawExtensionRaw {
					object = v
				}
			}
		}
	}
	event.Type = watch.EventType(eventName(name))
	switch event.Type {
	case watch.Error:
		return event, false, failedEvent(statusInside(object), len(object))
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return event, false, d.unknown(string(event.Type))
	}
	e, err := open(object)
	if err != nil {
		return event, false, malformed(d.window.off, "%w", err)
	}
	if event.Type == watch.Bookmark {
		return d.bookmark(protobufBookmark(e.raw))
	}
	event.Object, event.ResourceVersion, ok, err = d.protobufItem(e, event.Type)
	return event, ok, err
}

// protobufBookmark is jsonBookmark for a message.
func protobufBookmark(b []byte) (version string, initialEventsEnd bool) {
	for num, metadata := range lengthDelimited(b) {
		if num != objectMetadata {
			continue
		}
		for num, v := range lengthDelimited(metadata) {
			switch num {
			case metaResourceVersion:
				version = string(v)
			case metaAnnotations:
				if key, value := mapEntry(v); string(key) == api.InitialEventsEndAnnotation {
					initialEventsEnd = string(value) == "true"
				}
			}
		}
	}
	return version, initialEventsEnd
}

func mapEntry(b []byte) (key, value []byte) {
	for num, v := range lengthDelimited(b) {
		switch num {
		case 1:
			key = v
		case 2:
			value = v
		}
	}
	return key, value
}
