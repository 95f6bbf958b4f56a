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
	next  func(to *api.Event[any]) (ok bool, err error) // reads a frame
	event api.Event[any]                                // of the current frame
	err   error                                         // the error that ended the watch
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
	for ok := false; !ok && r.err == nil; {
		ok, err = r.next(&r.event)
		event.Type = r.event.Type
		if _, skippable := err.(*UnknownEventError); skippable {
			return event, err
		}
		r.err = public(err)
	}
	if r.err == nil {
		event.Object, _ = r.event.Object.(T) // a bookmark has none
		event.ResourceVersion, event.InitialEventsEnd = r.event.ResourceVersion, r.event.InitialEventsEnd
		r.event.Object = nil // the reader keeps no object alive
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

// event sets the event of a frame: its type, and its object, which has size bytes. If ok is false and err is nil, the
// event is skipped.
func (a *answer) event(to *api.Event[any], name watch.EventType, o encoded, size int) (ok bool, err error) {
	*to = api.Event[any]{Type: name}
	switch name {
	case watch.Added, watch.Modified, watch.Deleted:
		to.Object, to.ResourceVersion, ok, err = a.item(o, name)
		return ok, err
	case watch.Bookmark:
		if err := a.check(o.typeMeta()); err != nil {
			return false, err // the version, or the end of the initial state, of something else
		}
		to.ResourceVersion, to.InitialEventsEnd = o.bookmark()
		if to.ResourceVersion == "" {
			return false, malformed(a.window.Offset(), "a bookmark without a resource version") // no watch could continue from it
		}
		return true, nil
	case watch.Error:
		status, _ := o.status()
		return false, failedEvent(status, size)
	case "":
		return false, malformed(a.window.Offset(), "a frame without the type of its event")
	default:
		return false, &UnknownEventError{Type: string(name)}
	}
}
