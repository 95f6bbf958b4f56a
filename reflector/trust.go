package reflector

import (
	"bytes"
	"encoding/json"
	"reflect"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// trust says how far the versions of a source are trusted, and counts what it costs to check.
type trust struct {
	reuse    bool // in a list, an object of a known UID and version is the known one
	dedup    bool // in a watch, an event of a known version was sent twice
	compared int  // objects since the last list or watch began
}

// maxCompared bounds how many objects of one list or watch are compared. A source that changes objects without changing their
// version is found with the first of them; a source that does not, and hands out copies of what is known, pays no more.
const maxCompared = 100

// unversioned reports whether object differs from the known object of the same version. It compares only if that can
// tell: a decoder that finds the version known hands out the known object itself, and a transform has changed the known
// object. A server read by apiclient therefore costs nothing in lists, and in a watch the comparison of a repeated event.
func (r *Reflector[T]) unversioned(known, object T) bool {
	if r.o.Transform != nil || r.trust.compared >= maxCompared || isSame(known, object) {
		return false
	}
	r.trust.compared++
	return !hasEqualContent(known, object)
}

// isSame reports whether both are the same pointer.
func isSame[T any](a, b T) bool {
	return reflect.TypeFor[T]().Kind() == reflect.Pointer && any(a) == any(b)
}

// hasEqualContent compares memory first, which works for every type, and then JSON: a Quantity that was printed differs
// from one that was not, but not in its JSON. A type that has no JSON is compared by memory only.
func hasEqualContent(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	left, err := json.Marshal(a)
	if err != nil || len(left) == len("{}") {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && bytes.Equal(left, right)
}

// distrust stops the reuse and the de-duplication of a source that changed an object without changing its version. The
// price is what client-go always pays: each list is decoded and passed on whole. It cannot lose anything.
func (r *Reflector[T]) distrust(key api.Key) {
	r.trust.reuse, r.trust.dedup = false, false
	r.status.unversioned()
	r.log.Warn("source changes objects without changing their versions: from now on every object of a list and every event "+
		"is passed on", zap.String("key", api.FormatKey(key)))
}

// reuse returns the known object that stands in for an object of a list, if there is one.
func (r *Reflector[T]) reuse(key api.Key, object T, s state) (known T, reused bool) {
	known, exists := r.store.Get(key)
	if !exists || !r.reuses(s) || !api.SameVersion(known, object) {
		return known, false
	}
	if r.unversioned(known, object) {
		r.distrust(key)
		return known, false
	}
	return known, true
}

// reuses reports whether what the store has may stand in for an object of the same UID and version.
func (r *Reflector[T]) reuses(s state) bool { return r.trust.reuse && !s.rewound }
