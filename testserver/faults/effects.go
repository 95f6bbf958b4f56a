package faults

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Effect is what a fault does. The types of this file implement it.
type Effect interface{ effect() }

// State is a state of the server: a Snapshot of package testserver.
type State interface {
	// ResourceVersion returns the version of the state.
	ResourceVersion() string
}

// These effects affect requests. Fault.Skip and Fault.Times count requests.
type (
	// Fail answers with an error status and does not process the request.
	Fail struct {
		Code       int                 // zero means 500
		Reason     metav1.StatusReason // empty means the usual reason of the code
		Message    string
		RetryAfter time.Duration // rounded down to whole seconds; sent as a header and in the Status
		Body       []byte        // if not nil, sent unchanged instead of a Status
		Header     http.Header   // added to the answer, for example a wrong Content-Type or Content-Length
	}
	// Delay answers after a pause.
	Delay struct{ For time.Duration }
	// Stall stops sending after this number of bytes of the body, or before the headers if After is zero. It ends when
	// the injection is removed or the client disconnects. After does not apply to a WebSocket, which has no body.
	Stall struct{ After int }
	// Reset resets the connection, or the stream in HTTP/2, without an answer.
	Reset struct{}
	// Cut ends the answer after this number of bytes of the body. If Abrupt, it resets the connection; otherwise it
	// ends the answer normally, so only the content is truncated.
	Cut struct {
		After  int
		Abrupt bool
	}
	// Stale answers gets, lists and watches from the state of a snapshot, like an API server whose watch cache is
	// behind. Watches that begin during the fault send nothing newer until the injection is removed. A list or watch
	// without a version is a consistent read, so it is not stale. A get without a version is stale, too;
	// kube-apiserver reads it from its storage.
	Stale struct{ At State }
	// RefuseWatchList answers watches with sendInitialEvents with 422, as servers without the WatchList feature do.
	RefuseWatchList struct{}
	// IgnoreLimit answers a list with all items although the request has a limit.
	IgnoreLimit struct{}
	// EndlessList repeats the last item of a list forever. A list without items ends normally.
	EndlessList struct{}
	// ShortWatch ends watches after this time. Zero ends them at once.
	ShortWatch struct {
		For    time.Duration
		Abrupt bool
	}
)

// These effects affect the frames of watches, including open watches. If Match.Frames contains Item, they affect the
// items of lists. Fault.Skip and Fault.Times count frames and items.
type (
	// Drop omits a frame. With watch.Bookmark, a watch has no bookmarks; with InitialEventsEnd, an initial list never
	// ends; with Item, an object is missing in a list.
	Drop struct{}
	// Duplicate sends a frame or an item twice.
	Duplicate struct{}
	// Hold sends a frame after this number of later frames. If Frames is zero, it sends the frame when the injection is
	// removed.
	Hold struct{ Frames int }
	// Malform makes an object undecodable. It replaces the object's JSON by the result of Mangle; if Mangle is nil,
	// every field except kind, apiVersion and metadata gets a wrong type. Without Match.Frames, it affects list items
	// and all frames except bookmarks. For clients of protobuf, Mangle gets the object's message instead of its JSON.
	Malform struct{ Mangle func([]byte) []byte }
	// CutFrame ends the watch after this number of bytes of a frame. If Abrupt, it resets the connection.
	CutFrame struct {
		At     int
		Abrupt bool
	}
	// EndWatch ends the watch instead of sending a frame. If Error is set, an ERROR event comes first. If Abrupt, it
	// resets the connection.
	EndWatch struct {
		Error  *metav1.Status
		Abrupt bool
	}
	// StallEvents stops sending before a frame until the injection is removed or the client disconnects.
	StallEvents struct{}
)

// These effects happen when they are injected.
type (
	// Disconnect ends the matching open watches, oldest first. If Error is set, an ERROR event comes first. If Abrupt,
	// it resets the connections.
	Disconnect struct {
		Error  *metav1.Status
		Abrupt bool
	}
	// Compact deletes all history: requests for an older version, and continue tokens, get 410. Removing the fault does
	// not restore the history. Seen counts these answers.
	Compact struct{}
	// Restore sets the state and the version back to those of the snapshot, like a restored etcd, and resets every
	// watch. Seen counts reads that were answered before the server reached its former version again.
	Restore struct{ To State }
	// Outage resets every connection and refuses new ones until the fault is removed. Seen counts both.
	Outage struct{}
)

func (Fail) effect()            {}
func (Delay) effect()           {}
func (Stall) effect()           {}
func (Reset) effect()           {}
func (Cut) effect()             {}
func (Stale) effect()           {}
func (RefuseWatchList) effect() {}
func (IgnoreLimit) effect()     {}
func (EndlessList) effect()     {}
func (ShortWatch) effect()      {}
func (Drop) effect()            {}
func (Duplicate) effect()       {}
func (Hold) effect()            {}
func (Malform) effect()         {}
func (CutFrame) effect()        {}
func (EndWatch) effect()        {}
func (StallEvents) effect()     {}
func (Disconnect) effect()      {}
func (Compact) effect()         {}
func (Restore) effect()         {}
func (Outage) effect()          {}
