package recording

import (
	"net/http"
	"sort"
	"time"

	"github.com/leatproject/leat/api"
)

// Scope is a collection that a client followed: all lists and watches with the same resource, namespace and selectors.
type Scope struct {
	Resource                     api.Resource
	Namespace                    string // empty for all
	LabelSelector, FieldSelector string

	state Progress
	open  map[uint64]Activity // the streams that have no end yet
	busy  map[Activity]int    // the number of streams with an activity
	marks []Progress          // by time
}

// Activity is what a client does with a collection.
type Activity string

// The activities, beginning with the one that shows the most of a collection. None means that no request is open.
const (
	Watching     Activity = "watching"
	WatchListing Activity = "WatchList"
	Listing      Activity = "listing"
	None         Activity = ""
)

// Progress is what the requests of a Scope had brought at a time. Its counters begin with the recording.
type Progress struct {
	Time     time.Time // of the last record
	Activity Activity
	// Synced reports that a list is complete. Version and Objects are then the state that an informer had cached.
	Synced  bool
	Version string
	Objects int

	Events, Bookmarks          int // of watches; Events has the objects of a WatchList too
	Lists, WatchLists, Watches int // Lists and WatchLists are complete; Watches have begun
	Failed                     int // requests that were refused
	Bytes                      int64
	// Code is the status of the last request if that was refused, and 0 otherwise.
	Code int
	// Ended says how the last stream ended: Ended, Closed, Broken or Lost. It is 0 before that.
	Ended RecordKind
}

// At returns the progress at a time; ok is false before the first request.
func (s *Scope) At(t time.Time) (p Progress, ok bool) {
	n := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].Time.After(t) })
	if n == 0 {
		return p, false
	}
	return s.marks[n-1], true
}

// Requests returns the number of requests that had an answer.
func (p Progress) Requests() int { return p.Lists + p.Watches + p.Failed }

// progress returns the Scope of a stream, and makes it if it does not exist.
func (l *loader[T]) progress(s *Stream) *Scope {
	key := s.scope()
	key.contentType = "" // a request that is refused may have another one
	sc := l.progresses[key]
	if sc == nil {
		sc = &Scope{
			Resource: s.Resource(), Namespace: s.Namespace, LabelSelector: s.Options["labelSelector"],
			FieldSelector: s.Options["fieldSelector"], open: map[uint64]Activity{}, busy: map[Activity]int{},
		}
		l.progresses[key] = sc
		l.timeline.scopes = append(l.timeline.scopes, sc)
	}
	return sc
}

// opened notes the head of an answer.
func (s *Scope) opened(stream *Stream) {
	s.state.Code = 0
	switch {
	case stream.Code != http.StatusOK && stream.Code != http.StatusSwitchingProtocols:
		s.state.Failed, s.state.Code = s.state.Failed+1, stream.Code
		return
	case stream.Watch:
		s.state.Watches++
	}
	if stream.Note != "" {
		return // without data, and so without an end
	}
	switch {
	case !stream.Watch:
		s.set(stream, Listing)
	case stream.Options["sendInitialEvents"] == "true":
		s.set(stream, WatchListing)
	default:
		s.set(stream, Watching)
	}
}

// set sets the activity of a stream; None after its end.
func (s *Scope) set(stream *Stream, a Activity) {
	s.busy[s.open[stream.ID]]--
	s.busy[a]++
	s.open[stream.ID] = a
	if a == None {
		delete(s.open, stream.ID)
	}
}

// listed notes a complete list or WatchList.
func (s *Scope) listed(stream *Stream) {
	if !stream.Watch {
		s.state.Lists++
		return
	}
	s.state.WatchLists++
	s.set(stream, Watching)
}

// event notes an event of a watch.
func (s *Scope) event(bookmark bool) {
	if bookmark {
		s.state.Bookmarks++
	} else {
		s.state.Events++
	}
}

func (s *Scope) ended(stream *Stream, kind RecordKind) {
	s.set(stream, None)
	s.state.Ended = kind
}

// mark adds the present state to the history.
func (s *Scope) mark(at time.Time, bytes int, known *scopeState) {
	s.state.Activity = None
	for _, a := range []Activity{Listing, WatchListing, Watching} {
		if s.busy[a] > 0 {
			s.state.Activity = a
		}
	}
	if known != nil {
		s.state.Synced, s.state.Version, s.state.Objects = known.synced, known.version, len(known.objects)
	}
	s.state.Bytes += int64(bytes)
	if last := len(s.marks) - 1; last >= 0 && !s.marks[last].Time.Before(at) {
		s.state.Time = s.marks[last].Time // the clock may have been set back
		s.marks[last] = s.state
		return
	}
	s.state.Time = at
	s.marks = append(s.marks, s.state)
}
