package testserver

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Effect is what a fault does: one of the types of this file.
type Effect interface{ effect() }

// immediate is an effect that happens when it is injected.
type immediate interface {
	Effect
	happen(s *Server, i *Injection)
}

// These effects are on requests; Fault.Skip and Fault.Times count requests.
type (
	// Fail answers with a status instead of the truth.
	Fail struct {
		Code       int                 // zero means 500
		Reason     metav1.StatusReason // empty means the usual one of the code
		Message    string
		RetryAfter time.Duration // in whole seconds; sent as header and in the Status
		Body       []byte        // sent as it is, instead of a Status
		Header     http.Header   // added to the answer: a wrong Content-Type, a Content-Length that lies
	}
	// Delay answers later.
	Delay struct{ For time.Duration }
	// Stall goes silent after so many bytes of the body, or before the headers when After is zero, until the injection
	// is removed or the client goes. A WebSocket has no body.
	Stall struct{ After int }
	// Reset tears the connection down without an answer.
	Reset struct{}
	// Cut ends the answer after so many bytes of the body: in good order, so that only the contents are truncated, or
	// abruptly.
	Cut struct {
		After  int
		Abrupt bool
	}
	// Stale answers gets, lists and watches from the state of a snapshot, as an API server does that has lost touch with
	// its storage. Watches that begin meanwhile see nothing newer until the injection is removed.
	Stale struct{ At *Snapshot }
	// RefuseStreaming answers watches with sendInitialEvents with 422, as servers without the feature do.
	RefuseStreaming struct{}
	// IgnoreLimit answers a list whole although it has a limit.
	IgnoreLimit struct{}
	// EndlessList repeats the last item of a list for ever; a list without items ends.
	EndlessList struct{}
	// ShortWatch ends watches so long after they begin: at once, if it is zero.
	ShortWatch struct {
		For    time.Duration
		Abrupt bool
	}
)

// These effects are on the frames of watches, those of watches that are open already too, and where Match.Frames says
// so on the items of lists; Fault.Skip and Fault.Times count frames.
type (
	// DropEvent leaves a frame out. With FrameBookmark there are no bookmarks, with FrameInitialEventsEnd a streamed
	// list never ends, with FrameItem a list lacks an object.
	DropEvent struct{}
	// DuplicateEvent sends a frame or an item twice.
	DuplicateEvent struct{}
	// HoldEvent sends a frame only after so many later ones or, when Frames is zero, once the injection is removed.
	HoldEvent struct{ Frames int }
	// Malform makes an object undecodable: every field but the metadata gets a wrong type, or whatever Mangle returns
	// for the JSON of the object. Without Match.Frames it affects items and frames.
	Malform struct{ Mangle func([]byte) []byte }
	// CutFrame ends the watch after so many bytes of a frame.
	CutFrame struct {
		At     int
		Abrupt bool
	}
	// EndWatch ends the watch instead of sending a frame, after an ERROR event if there is an Error.
	EndWatch struct {
		Error  *metav1.Status
		Abrupt bool
	}
	// StallEvents goes silent before a frame until the injection is removed or the client goes.
	StallEvents struct{}
)

// These effects happen when they are injected.
type (
	// Disconnect ends the matching watches that are open, oldest first, after an ERROR event if there is an Error.
	Disconnect struct {
		Error  *metav1.Status
		Abrupt bool
	}
	// Compact forgets all history, so that whoever asks for an older version, or continues a list, gets 410. Removing it
	// brings nothing back. Seen counts these answers.
	Compact struct{}
	// Restore goes back in time: the state and the version are those of the snapshot, and every watch is cut. Seen counts
	// reads that were answered before the server had reached the version that it had before.
	Restore struct{ To *Snapshot }
	// Outage resets every connection and refuses new ones until it is removed. Seen counts both.
	Outage struct{}
)

func (Fail) effect()            {}
func (Delay) effect()           {}
func (Stall) effect()           {}
func (Reset) effect()           {}
func (Cut) effect()             {}
func (Stale) effect()           {}
func (RefuseStreaming) effect() {}
func (IgnoreLimit) effect()     {}
func (EndlessList) effect()     {}
func (ShortWatch) effect()      {}
func (DropEvent) effect()       {}
func (DuplicateEvent) effect()  {}
func (HoldEvent) effect()       {}
func (Malform) effect()         {}
func (CutFrame) effect()        {}
func (EndWatch) effect()        {}
func (StallEvents) effect()     {}
func (Disconnect) effect()      {}
func (Compact) effect()         {}
func (Restore) effect()         {}
func (Outage) effect()          {}

func (d Disconnect) happen(s *Server, i *Injection) {
	s.watches.end(func(r Request) (ending, bool) {
		m := i.fault.Match
		if !m.request(r) || !m.place(r.Namespace, r.Name) || !i.claim() {
			return ending{}, false
		}
		return ending{injection: i, status: d.Error, abrupt: d.Abrupt}, true
	})
}

func (Compact) happen(s *Server, i *Injection) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	i.version = s.store.version
	s.store.compact()
}

func (r Restore) happen(s *Server, i *Injection) {
	s.store.mu.Lock()
	i.version = s.store.version
	s.store.restore(r.To)
	s.store.mu.Unlock()
	s.watches.end(func(Request) (ending, bool) { return ending{abrupt: true}, true })
}

func (Outage) happen(s *Server, i *Injection) {
	s.mu.Lock()
	conns := make([]resetter, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, resetterOf(c))
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.Reset()
		i.see()
	}
}
