package codec

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// EventReader reads the frames of a watch from a stream. It belongs to one goroutine. It corresponds to the
// watch.Decoder of client-go's rest/watch.
type EventReader[T any] struct {
	d     decoder[T]
	s     *scanner // for JSON
	media media
	frame frame
	err   error // the error that ended the watch
}

// frame is one frame of JSON.
type frame struct {
	event  string
	object outline
}

// NewEventReader returns a reader of the events of resource in r, until ctx ends. mediaType is the Content-Type. The
// error is a MediaTypeError if T cannot be decoded from it.
func (c *Codec[T]) NewEventReader(ctx context.Context, r io.Reader, mediaType string, resource api.Resource, o api.Options[T]) (*EventReader[T], error) {
	m, err := c.media(mediaType)
	if err != nil {
		return nil, err
	}
	w := &window{r: r, limit: c.limit}
	d := c.decoder(ctx, w, resource, o)
	reader := &EventReader[T]{d: d, s: newScanner(d.ended, w), media: m}
	reader.d.remember(m)
	return reader, nil
}

// Next returns the next event. It blocks until the last byte of the event has arrived or the stream ends. A frame whose
// object cannot be decoded is passed to Options.OnUndecodable and skipped if that returns nil.
//
// At the end of the stream Next returns io.EOF. If the stream ends inside a frame, the error wraps io.ErrUnexpectedEOF.
// If ctx ends while a large object is being decoded, the error is that of ctx. An ERROR frame is a
// *apierrors.StatusError. Next may be called again only after an UnknownEventError; every other error ends the watch.
func (r *EventReader[T]) Next() (event api.Event[T], err error) {
	for ok := false; !ok && r.err == nil; {
		if r.media == mediaProtobuf {
			event, ok, err = r.d.protobufFrame()
		} else {
			event, ok, err = r.jsonFrame()
		}
		if _, skippable := err.(*UnknownEventError); skippable {
			return event, err
		}
		r.err = err
	}
	return event, r.err
}

// jsonFrame reads one frame. It first drops the rest of the previous frame, so the window holds only the current frame.
func (r *EventReader[T]) jsonFrame() (event api.Event[T], ok bool, err error) {
	s := r.s
	s.held = false
	i, err := s.space(0)
	if err != nil {
		return event, false, err
	}
	s.drop(i)
	s.held = true
	r.frame.event = ""
	r.frame.object.reset()
	end, err := s.object(0, r.member)
	if err != nil {
		return event, false, err
	}
	event, ok, err = r.d.jsonEvent(r.frame.event, s.b, &r.frame.object)
	s.drop(end)
	return event, ok, err
}

// member reads one member of a frame, whose value begins at or after i.
func (r *EventReader[T]) member(name []byte, i int) (int, error) {
	i, err := r.s.next(i)
	if err != nil {
		return i, err
	}
	switch string(name) {
	case "type":
		end, err := r.s.value(i, nil)
		if err == nil {
			r.frame.event = eventName(textOf(r.s.b[i:end]))
		}
		return end, err
	case "object":
		r.frame.object.reset()
		return r.s.value(i, &r.frame.object)
	default:
		return r.s.value(i, nil)
	}
}

// eventName returns the type of an event. It does not allocate for a known type.
func eventName(b []byte) string {
	for _, known := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(b) == string(known) {
			return string(known)
		}
	}
	return string(b[:min(len(b), maxQuoted)])
}

// jsonEvent returns the event of a frame. o is the outline of the object in b. If ok is false and err is nil, the event
// is skipped.
func (d *decoder[T]) jsonEvent(name string, b []byte, o *outline) (event api.Event[T], ok bool, err error) {
	event.Type = watch.EventType(name)
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		event.Object, event.ResourceVersion, ok, err = d.jsonItem(b, o, event.Type)
		return event, ok, err
	case watch.Bookmark:
		return d.bookmark(jsonBookmark(o.at(b)))
	case watch.Error:
		return event, false, jsonFailure(b, o)
	default:
		return event, false, d.unknown(name)
	}
}

// jsonFailure returns the error of an ERROR frame.
func jsonFailure(b []byte, o *outline) error {
	if len(o.tokens) == 0 {
		return failedEvent(nil, 0)
	}
	var status *metav1.Status
	h, c := o.head(b), o.at(b)
	if kind := o.stringAt(b, h.kind); c.kind() == '{' && (len(kind) == 0 || isStatusKind(o.stringAt(b, h.apiVersion), kind)) {
		status = jsonStatus(c)
	}
	return failedEvent(status, len(c.raw()))
}

// unknown returns the error of an unknown event type. A frame without a type is malformed.
func (d *decoder[T]) unknown(name string) error {
	if name == "" {
		return malformed(d.window.off, "a frame without the type of its event")
	}
	return &UnknownEventError{Type: name}
}

// bookmark returns the event of a bookmark. It rejects a bookmark without a resource version, because a watch could not
// continue from it.
func (d *decoder[T]) bookmark(version string, initialEventsEnd bool) (event api.Event[T], ok bool, err error) {
	if version == "" {
		return event, false, malformed(d.window.off, "a bookmark without a resource version")
	}
	event.Type, event.ResourceVersion, event.InitialEventsEnd = watch.Bookmark, version, initialEventsEnd
	return event, true, nil
}

// jsonBookmark reads the version and the annotation of a bookmark. It does not use T, which may declare neither.
func jsonBookmark(c cursor) (version string, initialEventsEnd bool) {
	if !c.member("metadata") {
		return "", false
	}
	if at := c; at.member("resourceVersion") {
		version = string(at.stringOf())
	}
	if at := c; at.member("annotations") && at.member(api.InitialEventsEndAnnotation) {
		initialEventsEnd = string(at.stringOf()) == "true"
	}
	return version, initialEventsEnd
}
