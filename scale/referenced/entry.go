package referenced

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// identity is a state of an object. It is zero if there is no object.
type identity struct {
	uid     types.UID
	version string
}

func identityOf(object api.Object) identity {
	return identity{object.GetUID(), object.GetResourceVersion()}
}

// entry is a referenced object. The mutex of the Set guards its fields.
type entry[T api.Object] struct {
	key  api.Key
	meta identity // in the metadata
	have identity // in the queue
	// since is the version up to which the state in the queue is valid, if meta and have differ. It is empty if the
	// object was never in the queue.
	since string

	queued, running bool // waits for a request, or one is in flight
	// changed reports that meta has changed since the request in flight began, and covered is the version before.
	changed bool
	covered string // also of ahead
	discard bool   // the answer in flight may be of an earlier object

	ahead *T // a state that is newer than the metadata

	err     error       // of the last request; nil if it succeeded
	attempt int         // failures in a row
	timer   *time.Timer // of the next request; nil if no request is due
	gone    bool        // not referenced any more
}

func (e *entry[T]) isExact() bool { return e.meta == e.have }

// isFresh reports whether an object exists, is not in the queue, and its first request has not failed.
func (e *entry[T]) isFresh() bool {
	return !e.gone && !e.isExact() && e.have == identity{} && e.err == nil
}

// recheck adds and removes the entries of keys whose references may have changed. The indexes decide, and not the
// change that was noticed: a key may have lost or got other references since.
func (s *Set[T]) recheck(keys []api.Key) {
	if len(keys) == 0 {
		return
	}
	s.begin()
	defer s.commit()
	for _, key := range keys {
		switch e, referenced := s.entries[key], s.isReferenced(key); {
		case referenced && e == nil:
			s.add(key)
		case !referenced && e != nil:
			s.drop(e)
			delete(s.entries, key)
			delete(s.late, e)
			e.gone = true
		}
	}
}

// keys returns the keys of all entries.
func (s *Set[T]) keys() []api.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.entries))
}

func (s *Set[T]) isReferenced(key api.Key) bool {
	if in := s.client.Namespace(); in != "" && key.Namespace != in {
		return false
	}
	for _, refers := range s.referrers {
		if refers(key) {
			return true
		}
	}
	return false
}

func (s *Set[T]) add(key api.Key) {
	e := &entry[T]{key: key, meta: s.identity(key)}
	s.entries[key] = e
	if !e.isExact() {
		s.late[e] = struct{}{}
		s.want(e)
	}
}

// identity returns the state of an object in the metadata.
func (s *Set[T]) identity(key api.Key) identity {
	uid, version, _ := s.metadata.Snapshot().Identity(key)
	return identity{uid, version}
}

// drop removes an object from the queue, and ends the requests for it.
func (s *Set[T]) drop(e *entry[T]) {
	if known, ok := s.txn.Get(e.key); ok {
		s.txn.Delete(e.key, known, true)
	}
	e.have, e.ahead, e.discard, e.err, e.attempt = identity{}, nil, e.running, nil, 0
	e.stopTimer()
	s.txn.Touch() // readers may wait for the object
}

func (e *entry[T]) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// observe takes over a batch of metadata that was applied to their cache.
func (s *Set[T]) observe() {
	s.begin()
	defer s.commit()
	before := s.reached
	s.reached = s.metadata.ResourceVersion()
	for _, key := range s.changed {
		if e := s.entries[key]; e != nil {
			s.update(e, s.identity(key), before)
		}
	}
	s.changed = s.changed[:0]
	if !older(s.reached, before) {
		return
	}
	for _, e := range s.entries { // the server was restored, and newer states are of another history
		e.ahead, e.discard = nil, e.running
		if !e.isExact() {
			s.drop(e)
			s.want(e)
		}
	}
}

// update takes over the metadata of an object. before is the version of the metadata before the change.
func (s *Set[T]) update(e *entry[T], now identity, before string) {
	if now == e.meta {
		return
	}
	if e.isExact() {
		e.since = before
	}
	if e.running && !e.changed {
		e.changed, e.covered = true, before
	}
	e.meta = now
	if now == (identity{}) {
		s.drop(e)
	}
	if e.isExact() {
		delete(s.late, e)
		return
	}
	s.late[e] = struct{}{}
	if e.ahead != nil && ordered(identityOf(*e.ahead).version, now.version) {
		e.covered = before
		return // release compares it
	}
	e.ahead = nil
	s.want(e)
}

// put puts a state of an object into the queue, unless it is there.
func (s *Set[T]) put(e *entry[T], object T) {
	if id := identityOf(object); id != e.have {
		s.txn.Put(object, !s.complete)
		e.have = id
	}
	e.err, e.attempt = nil, 0
}

// finish takes over the answer to a request.
func (s *Set[T]) finish(e *entry[T], object T, err error) {
	s.fetching--
	e.running = false
	s.txn.Touch() // readers may wait for an error
	switch {
	case e.gone || e.isExact():
		return
	case e.discard:
	case err != nil:
		s.fail(e, err)
	default:
		s.take(e, object)
	}
	if !e.isExact() && e.ahead == nil {
		s.want(e)
	}
}

// take takes over the state that a request has returned. The server reads it after the request began, so it is at least
// as new as the metadata at that time.
func (s *Set[T]) take(e *entry[T], object T) {
	id := identityOf(object)
	order, ordered := api.CompareVersions(id.version, e.meta.version)
	switch {
	case id == e.meta:
		s.put(e, object)
	case ordered && order > 0, !ordered && !e.changed:
		e.ahead, e.err = &object, nil
	case !e.changed:
		s.fail(e, errOld)
	case id.uid == e.meta.uid: // an intermediate state, so that readers of a busy object see progress
		s.put(e, object)
		e.since = e.covered
	}
}

// advance computes the version of the next batch: that of the metadata, or an older one up to which the state of each
// late entry is valid. An object that is not in the queue because its request failed does not hold the version back:
// its readers get the error. A state ahead of the metadata enters the queue when they have reached its version.
//
// Rule: the version never decreases, unless that of the metadata does. Reason: a Gate takes that for a restored server.
// Price: an object that becomes referenced enters the cache without a new version.
func (s *Set[T]) advance() {
	version, complete := s.reached, s.listed && s.reached != ""
	for e := range s.late {
		s.release(e)
		switch {
		case e.isExact():
			delete(s.late, e)
			continue
		case e.have == identity{} && e.err != nil:
			continue
		case e.have == identity{}:
			if !s.complete {
				return // without a look at the others, because there may be thousands in the first list
			}
			complete = false
		}
		since := cmp.Or(e.since, s.version)
		if order, ordered := api.CompareVersions(since, version); !ordered {
			version = s.version
		} else if order < 0 {
			version = since
		}
	}
	if !s.complete {
		if !complete {
			return
		}
		s.complete = true
		s.txn.Complete()
	}
	if version != s.version && (!older(version, s.version) || older(s.reached, s.version)) {
		s.version = version
		s.txn.Touch()
	}
}

// release puts a state into the queue that the metadata have reached. If they have passed it without an event, the
// watch has lost one, and the state counts.
func (s *Set[T]) release(e *entry[T]) {
	if e.ahead == nil {
		return
	}
	id := identityOf(*e.ahead)
	if id != e.meta && (older(s.reached, id.version) || !ordered(s.reached, id.version)) {
		return
	}
	object := *e.ahead
	e.ahead = nil
	switch {
	case !older(id.version, e.meta.version):
		e.meta = id
		s.put(e, object)
	case id.uid == e.meta.uid: // they have passed it
		s.put(e, object)
		e.since = e.covered
	}
	if !e.isExact() {
		s.want(e)
	}
}

// older reports whether version a is older than b. It is false if the versions have no order.
func older(a, b string) bool {
	order, ok := api.CompareVersions(a, b)
	return ok && order < 0
}

func ordered(a, b string) bool {
	_, ok := api.CompareVersions(a, b)
	return ok
}
