package reflector

import (
	"bytes"
	"encoding/json"
	"reflect"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// versionUse says what the versions of objects are used for. A source that changes an object without changing its
// version turns both uses off.
type versionUse struct {
	reuse    bool // in a list, the known object replaces an object of the same UID and version
	dedup    bool // in a watch, an event of a known version is dropped
	compared int  // objects compared since the last list or watch began
}

// maxCompared bounds how many objects of one list or watch are compared. The first object that differs is enough to
// recognise a source without versions. A source with versions that returns copies costs no more comparisons than this.
const maxCompared = 100

// unversioned reports whether object differs from the known object of the same version. It does not compare if both are
// the same pointer, because a decoder returns the known object for a known version, nor after a transform, which has
// changed the known object. With apiclient, lists therefore cost nothing, and a watch compares repeated events only.
func (r *Reflector[T]) unversioned(known, object T) bool {
	if r.o.Transform != nil || r.versions.compared >= maxCompared || api.Identical(known, object) {
		return false
	}
	r.versions.compared++
	return !hasEqualContent(known, object)
}

// hasEqualContent reports whether a and b are equal in memory or as JSON. A Quantity changes in memory when it is
// printed, but not as JSON. A type without JSON fields is compared in memory only.
func hasEqualContent(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	left, _ := json.Marshal(a) // empty after an error
	right, _ := json.Marshal(b)
	return len(left) > len("{}") && bytes.Equal(left, right)
}

// ignoreVersions stops reuse and deduplication after the source has changed an object without changing its version. The
// price: every object of a list is decoded and passed on, as in client-go. No update is lost.
func (r *Reflector[T]) ignoreVersions(key api.Key) {
	r.versions.reuse, r.versions.dedup = false, false
	r.status.unversioned()
	r.log.Warn("the source changes objects without changing their versions; from now on the reflector passes on every object "+
		"of a list and every event", zap.String("key", api.FormatKey(key)))
}

// reuse returns the known object that replaces an object of a list, and whether it does.
func (r *Reflector[T]) reuse(key api.Key, object T, s *state) (known T, reused bool) {
	known, exists := r.store.Get(key)
	if !exists || !r.reuses(s) || !api.SameVersion(known, object) {
		return known, false
	}
	if r.unversioned(known, object) {
		r.ignoreVersions(key)
		return known, false
	}
	return known, true
}

// asksKnown reports whether a decoder is to ask for known objects. It costs a look at the metadata of each object, and
// of each event that follows a WatchList, so an empty store is not worth it.
func (r *Reflector[T]) asksKnown(s *state) bool { return r.reuses(s) && r.store.KnownLen() > 0 }

// reuses reports whether known objects may replace objects of the same UID and version.
func (r *Reflector[T]) reuses(s *state) bool { return r.versions.reuse && s.list.need < acceptRollback }
