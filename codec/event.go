package codec

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// EventReader reads the frames of a watch from a stream. It belongs to one goroutine. It corresponds to the
// watch.Decoder of client-go's rest/watch.
type EventReader[T any] struct {
	next func() (event api.Event[any], ok bool, err error) // reads a frame
	err  error                                             // the error that ended the watch
}

// NewEventReader returns a reader of the events of resource in r, until ctx ends. mediaType is the Content-Type. The
// error is a MediaTypeError if T cannot be decoded from it.
func (c *Codec[T]) NewEventReader(ctx context.Context, r io.Reader, mediaType string, resource api.Resource, o api.Options[T]) (*EventReader[T], error) {
	reader, err := c.d.reader(mediaType)
	if err != nil {
		return nil, err
	}
	return &EventReader[T]{next: reader.frames(answerWith(&c.d, ctx, r, &resource, &o))}, nil
}

// Next returns the next event. It blocks until the last byte of the event has arrived or the stream ends. A frame whose
// object cannot be decoded is passed to Options.OnUndecodable and skipped if that returns nil.
//
// At the end of the stream Next returns io.EOF. If the stream ends inside a frame, the error wraps io.ErrUnexpectedEOF.
// If ctx ends while a large object is being decoded, the error is that of ctx. An ERROR frame is a
// *apierrors.StatusError. Next may be called again only after an UnknownEventError; every other error ends the watch.
func (r *EventReader[T]) Next() (event api.Event[T], err error) {
	for r.err == nil {
		frame, ok, err := r.next()
		if _, skippable := err.(*UnknownEventError); skippable {
			return api.Event[T]{Type: frame.Type}, err
		}
		if r.err = err; ok {
			event = api.Event[T]{Type: frame.Type, ResourceVersion: frame.ResourceVersion, InitialEventsEnd: frame.InitialEventsEnd}
			event.Object, _ = frame.Object.(T) // a bookmark has none
			return event, nil
		}
	}
	return event, r.err
}

// eventName returns the type of an event. It does not allocate for a known type.
func eventName(b []byte) watch.EventType {
	for _, known := range [...]watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(b) == string(known) {
			return known
		}
	}
	return watch.EventType(b[:min(len(b), maxQuoted)])
}

// event returns the event of a frame: its type, and its object, which has size bytes. If ok is false and err is nil,
// the event is skipped.
func (a *answer) event(name watch.EventType, o encoded, size int) (event api.Event[any], ok bool, err error) {
	event.Type = name
	switch name {
	case watch.Added, watch.Modified, watch.Deleted:
		event.Object, event.ResourceVersion, ok, err = a.item(o, name)
		return event, ok, err
	case watch.Bookmark:
		return a.bookmark(o.bookmark())
	case watch.Error:
		status, _ := o.status()
		return event, false, failedEvent(status, size)
	default:
		return event, false, a.unknown(name)
	}
}

// unknown returns the error of an unknown event type. A frame without a type is malformed.
func (a *answer) unknown(name watch.EventType) error {
	if name == "" {
		return malformed(a.window.off, "a frame without the type of its event")
	}
	return &UnknownEventError{Type: string(name)}
}

// bookmark returns the event of a bookmark. It rejects a bookmark without a resource version, because a watch could not
// continue from it.
func (a *answer) bookmark(version string, initialEventsEnd bool) (event api.Event[any], ok bool, err error) {
	if version == "" {
		return event, false, malformed(a.window.off, "a bookmark without a resource version")
	}
	event.Type, event.ResourceVersion, event.InitialEventsEnd = watch.Bookmark, version, initialEventsEnd
	return event, true, nil
}
