package recorder

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Type says how much an Event matters.
type Type string

// The types that Kubernetes knows.
const (
	Normal  Type = "Normal"  // something went as it should
	Warning Type = "Warning" // somebody may have to look
)

// Options of a Recorder. Controller is required.
type Options struct {
	// Controller is who reports, such as "example.org/mill-controller".
	Controller string
	// Instance tells this replica from others. Empty means the host's name.
	Instance string
	// CoreV1 writes to the core API instead of events.k8s.io/v1. Both show in either.
	CoreV1 bool
	// Queue is how many Events may wait to be written. Zero means 1,000.
	Queue int
	// FlushTimeout is how long Run may take, after its context has ended, to write the Events that wait. Zero means 5 s
	// or, when a Manager ends, what is left of its grace period.
	FlushTimeout time.Duration
	// Logger is told of Events that could not be written, at most once a minute, and, at the level of debug, of all; nil is
	// silent.
	Logger *zap.Logger
}

// Event is what is told of an object. Resource, Object, Reason and Note are required.
type Event struct {
	Resource api.Resource // of Object
	Object   api.Object
	// RelatedResource and Related name a second object that has to do with it, such as the Pod that a ReplicaSet made.
	RelatedResource api.Resource
	Related         api.Object

	Type   Type   // empty means Normal
	Reason string // why, in a word of CamelCase that machines may read: "FailedCreate"
	Action string // what was done, in such a word; empty means the reason
	Note   string // for people; cut at 1,024 bytes
}

// Recorder takes Events and, while it runs, writes them. Make one with New.
// It corresponds to the EventBroadcaster and EventRecorder of client-go.
type Recorder struct {
	o          Options
	log        *zap.Logger
	sink       sink
	queue      chan told
	counts     counts
	complaints complaints
	endBy      atomic.Pointer[time.Time] // nil unless EndBy was called
}

// told is an Event as it was when it was told: its object may change afterwards.
type told struct {
	identity
	note string
	at   time.Time
}

type counts struct{ recorded, dropped, spam, written, failed atomic.Int64 }

// Stats counts what became of Events since New.
type Stats struct {
	Recorded int64 // calls of Event
	Dropped  int64 // of those, found the queue full
	Spam     int64 // of those, were more about one object than anybody wants to read
	Written  int64 // requests that the server took: new Events and updates of series
	Failed   int64 // Events and updates that were given up, and Events of no object
	Waiting  int   // in the queue now
}

var errNoObject = errors.New("recorder: an Event needs an object that it is about")

// New returns a Recorder that writes with a client. It fails where Controller is empty or Queue negative.
func New(c *apiclient.Client, o Options) (*Recorder, error) {
	if o.Controller == "" {
		return nil, fmt.Errorf("recorder: Options.Controller is empty: an Event says who reports it")
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("recorder: no Instance is given, and the host has no name: %w", err)
		}
		o.Instance = host
	}
	if o.Queue < 0 {
		return nil, fmt.Errorf("recorder: Options.Queue is %d: no queue is that short", o.Queue)
	}
	if o.Queue == 0 {
		o.Queue = 1000
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Recorder{o: o, log: o.Logger, sink: newSink(c, o), queue: make(chan told, o.Queue)}, nil
}

// Event tells of something. It neither blocks nor fails; what is wrong with an Event is seen in Stats and in the log. One
// whose Object is nil, in a variable of whatever type, is nobody's and is not written.
func (r *Recorder) Event(e Event) {
	r.counts.recorded.Add(1)
	t := told{identity: identityOf(e), note: cut(e.Note, maxNote), at: time.Now()}
	if isNil(e.Object) {
		r.failed(t, errNoObject)
		return
	}
	select {
	case r.queue <- t:
	default:
		r.counts.dropped.Add(1)
		r.log.Debug("event dropped, the queue is full", t.fields()...)
	}
}

// Normal tells of something that went as it should.
func (r *Recorder) Normal(resource api.Resource, object api.Object, reason, format string, args ...any) {
	r.Event(Event{Resource: resource, Object: object, Type: Normal, Reason: reason, Note: fmt.Sprintf(format, args...)})
}

// Warning tells of something that somebody may have to look at.
func (r *Recorder) Warning(resource api.Resource, object api.Object, reason, format string, args ...any) {
	r.Event(Event{Resource: resource, Object: object, Type: Warning, Reason: reason, Note: fmt.Sprintf(format, args...)})
}

// EndBy sets the time at which Run has to return after its context has ended, instead of 5 s later. Until then
// Run writes the Events that wait. The zero time means no limit: Run then tries each Event for two minutes.
// A FlushTimeout that is not zero takes precedence. A Manager that ends calls EndBy before it ends the context of Run.
func (r *Recorder) EndBy(t time.Time) { r.endBy.Store(&t) }

// Stats returns the counts until now.
func (r *Recorder) Stats() Stats {
	return Stats{
		Recorded: r.counts.recorded.Load(),
		Dropped:  r.counts.dropped.Load(),
		Spam:     r.counts.spam.Load(),
		Written:  r.counts.written.Load(),
		Failed:   r.counts.failed.Load(),
		Waiting:  len(r.queue),
	}
}
