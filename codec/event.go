package codec

import (
	"bytes"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// EventReader reads the frames of a watch from a stream. It belongs to one goroutine.
// It corresponds to the watch.Decoder of client-go's rest/watch.
type EventReader[T any] struct {
	d     decoder[T]
	s     *scanner // of JSON
	media media
	frame frame
	err   error // what ended the watch
}

// frame is what one frame of JSON holds.
type frame struct {
	event  string
	object outline
}

// NewEventReader reads events of resource from r, whose Content-Type is mediaType. It fails with a MediaTypeError where
// T cannot be read from that.
func (c *Codec[T]) NewEventReader(r io.Reader, mediaType string, resource api.Resource, o api.Options[T]) (*EventReader[T], error) {
	m, err := c.media(mediaType)
	if err != nil {
		return nil, err
	}
	w := &window{r: r, limit: c.limit}
	reader := &EventReader[T]{d: c.decoder(w, resource, o), s: newScanner(w), media: m}
	reader.d.remember(m)
	return reader, nil
}

// Next returns the next event, and blocks until its last byte has arrived or the stream ends. A frame whose object
// cannot be decoded is reported to Options.OnUndecodable and, if that returns nil, left out.
//
// At the end of the stream it returns io.EOF, inside a frame an error that wraps io.ErrUnexpectedEOF. An ERROR frame is
// a *apierrors.StatusError. Only after an UnknownEventError may Next be called again: every other error ends the watch.
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

// jsonFrame reads one frame. What is left over of the last one is dropped first, so that nothing but a frame that has
// begun is ever held.
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

// member reads one member of a frame, whose value stands at or after i.
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

// eventName returns the type of an event, without allocating one that is known.
func eventName(b []byte) string {
	for _, known := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(b) == string(known) {
			return string(known)
		}
	}
	return string(b[:min(len(b), 64)])
}

// jsonEvent makes an event of a frame's type and of the object that o outlines in b. ok is false without an error for
// one that is to be left out.
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

// jsonFailure is the error of an ERROR frame.
func jsonFailure(b []byte, o *outline) error {
	if len(o.tokens) == 0 {
		return failedEvent(nil, nil)
	}
	var status *metav1.Status
	h, c := o.head(b), o.at(b)
	if kind := o.stringAt(b, h.kind); c.kind() == '{' && (len(kind) == 0 || isStatusKind(o.stringAt(b, h.apiVersion), kind)) {
		status = jsonStatus(c)
	}
	return failedEvent(status, c.raw())
}

// unknown is the error of a type that says nothing to us. A frame without any is no frame at all.
func (d *decoder[T]) unknown(name string) error {
	if name == "" {
		return malformed(d.window.off, "a frame without the type of its event")
	}
	return &UnknownEventError{Type: name}
}

// bookmark makes the event of one, and refuses one that says nothing: a watch could not go on from it.
func (d *decoder[T]) bookmark(version string, initialEventsEnd bool) (event api.Event[T], ok bool, err error) {
	if version == "" {
		return event, false, malformed(d.window.off, "a bookmark without a resource version")
	}
	event.Type, event.ResourceVersion, event.InitialEventsEnd = watch.Bookmark, version, initialEventsEnd
	return event, true, nil
}

// jsonBookmark reads the two things that a bookmark says. They are read apart from T, which may declare neither.
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

// EventDecoder reads events that arrive one by one, such as the messages of a WebSocket: a frame of JSON each, or a
// WatchEvent of protobuf without a length. It belongs to one goroutine.
type EventDecoder[T any] struct {
	reader EventReader[T]
	source bytes.Reader
}

// NewEventDecoder reads events of resource in the format of mediaType. It fails with a MediaTypeError where T cannot be
// read from that.
func (c *Codec[T]) NewEventDecoder(mediaType string, resource api.Resource, o api.Options[T]) (*EventDecoder[T], error) {
	r, err := c.NewEventReader(nil, mediaType, resource, o)
	if err != nil {
		return nil, err
	}
	d := &EventDecoder[T]{reader: *r}
	d.reader.d.window.r = &d.source
	return d, nil
}

// Decode returns the event that a whole frame holds, and does not keep the frame. ok is false without an error for an
// object that was reported to Options.OnUndecodable and is to be left out. The errors are those of EventReader.Next;
// a frame that ends too early, or has something behind its end, is malformed.
func (d *EventDecoder[T]) Decode(message []byte) (event api.Event[T], ok bool, err error) {
	r := &d.reader
	if limit := r.d.window.limit; len(message) > limit {
		return event, false, &TooLargeError{Limit: limit}
	}
	if r.media == mediaProtobuf {
		return r.d.protobufEvent(message)
	}
	d.source.Reset(message)
	r.d.window.reset()
	r.s.b = nil
	event, ok, err = r.jsonFrame()
	if err == io.EOF {
		err = truncated(0)
	}
	if err == nil {
		err = r.s.end(0)
	}
	return event, ok && err == nil, err
}
