package events

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Type is the importance of an Event.
type Type string

// The types of Kubernetes.
const (
	Normal  Type = "Normal"  // an expected event
	Warning Type = "Warning" // a user may have to act
)

// Options are the options of a Recorder. Controller is required.
type Options struct {
	// Controller is the name of the reporting controller, such as "example.org/mill-controller".
	Controller string
	// Instance distinguishes this replica from others. Empty means the host's name.
	Instance string
	// FieldManager is the name under which the server records the fields of Events. Empty means that of the client; see
	// apiclient.Config.
	FieldManager string
	// CoreV1 writes to the core API instead of events.k8s.io/v1. A cluster shows each Event in both APIs; package
	// testserver shows it only in the one that it was written to.
	CoreV1 bool
	// Queue is how many Events can wait to be written. 0 means 1,000.
	Queue int
	// FlushTimeout is how long Run may take, after its context has ended, to write the waiting Events. 0 means 5 s or,
	// when a Manager ends, the rest of its grace period.
	FlushTimeout time.Duration
	// Logger receives at most one entry a minute about Events that could not be written, and every Event at debug
	// level. A nil Logger means no log.
	Logger *zap.Logger
}

// Event is an event about an object. Resource, Object, Reason and Note are required.
type Event struct {
	Resource api.Resource // of Object
	Object   api.Object
	// RelatedResource and Related name a second object that is part of the event, such as the Pod that a ReplicaSet
	// created.
	RelatedResource api.Resource
	Related         api.Object

	Type   Type   // empty means Normal
	Reason string // the cause as one CamelCase word, for programs: "FailedCreate"
	Action string // the action as such a word; empty means the reason
	Note   string // for users; shortened to 1,024 bytes
}

// Recorder accepts Events and, while it runs, writes them. It corresponds to the EventBroadcaster and EventRecorder of
// client-go.
type Recorder struct {
	o          Options
	log        atomic.Pointer[zap.Logger]
	sink       sink
	queue      chan queuedEvent
	counts     counts
	failureLog failureLog
	endBy      atomic.Pointer[time.Time] // nil unless EndBy was called
}

// queuedEvent is a copy of an Event, because its object may change afterwards.
type queuedEvent struct {
	identity
	note string
	at   time.Time
}

type counts struct{ recorded, dropped, spam, written, failed atomic.Int64 }

// Stats are the counters of a Recorder since New.
type Stats struct {
	Recorded int64 // calls of Event
	Dropped  int64 // Events that found the queue full
	Spam     int64 // Events beyond the limit of their object
	Written  int64 // successful requests: new Events and updates of series
	Failed   int64 // Events and updates that were given up, and Events without an object
	Waiting  int   // in the queue now
}

var errNoObject = errors.New("events: Event.Object is nil")

// New returns a Recorder that writes with a client. It returns an error if Controller is empty or Queue is negative.
func New(c *apiclient.Client, o Options) (*Recorder, error) {
	if o.Controller == "" {
		return nil, fmt.Errorf("events: Options.Controller is empty")
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("events: Options.Instance is empty, and the name of the host is not known: %w", err)
		}
		o.Instance = host
	}
	if o.Queue < 0 {
		return nil, fmt.Errorf("events: Options.Queue is %d: it must not be negative", o.Queue)
	}
	if o.Queue == 0 {
		o.Queue = 1000
	}
	r := &Recorder{o: o, sink: newSink(c, o), queue: make(chan queuedEvent, o.Queue)}
	r.log.Store(cmp.Or(o.Logger, zap.NewNop()))
	return r, nil
}

// ReportingController returns Options.Controller.
func (r *Recorder) ReportingController() string { return r.o.Controller }

// String returns "recorder of" and the controller. A manager uses it as the name.
func (r *Recorder) String() string { return "recorder of " + r.o.Controller }

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger.
func (r *Recorder) UseLogger(log *zap.Logger) {
	if r.o.Logger == nil {
		r.log.Store(log)
	}
}

// Event records an event. It does not block. Stats and the log report an invalid Event. An Event whose Object is nil,
// or a nil pointer of any type, is not written.
func (r *Recorder) Event(e Event) {
	r.counts.recorded.Add(1)
	q := queuedEvent{identity: identityOf(e), note: shorten(e.Note, maxNote), at: time.Now()}
	if isNil(e.Object) {
		r.failed(q, errNoObject)
		return
	}
	select {
	case r.queue <- q:
	default:
		r.counts.dropped.Add(1)
		r.log.Load().Debug("event dropped because the queue is full", q.fields()...)
	}
}

// Normal records an expected event.
func (r *Recorder) Normal(resource api.Resource, object api.Object, reason, format string, args ...any) {
	r.Event(Event{Resource: resource, Object: object, Type: Normal, Reason: reason, Note: fmt.Sprintf(format, args...)})
}

// Warning records an event after which a user may have to act.
func (r *Recorder) Warning(resource api.Resource, object api.Object, reason, format string, args ...any) {
	r.Event(Event{Resource: resource, Object: object, Type: Warning, Reason: reason, Note: fmt.Sprintf(format, args...)})
}

// EndBy sets the time by which Run must return after its context has ended, instead of 5 s later. Run writes the
// waiting Events until then. The zero time means no limit: Run then tries each Event for two minutes. A FlushTimeout
// other than zero takes precedence. A Manager calls EndBy before it ends the context of Run.
func (r *Recorder) EndBy(t time.Time) { r.endBy.Store(&t) }

// Stats returns the current counters.
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
