package cachedclient

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// place is where an object is to be seen; another one of its name is another object.
type objectID struct {
	target writeTarget
	key    api.Key
	uid    types.UID
}

// unseenWrites is what reconciles of one key have written and caches have not shown yet, and who waits for that. Its
// Gate's lock guards it.
type unseenWrites struct {
	key    api.Key
	writes map[objectID]write // the last one of each object

	caches map[writeTarget]struct{} // that have been asked to poke

	waiting []func()    // whom to call when everything has been seen
	since   time.Time   // when the first of them came
	timer   *time.Timer // when they go on in any case; nil while nobody waits
}

func (l *unseenWrites) isWaiting() bool { return l.timer != nil }

// note takes a write down in place of an earlier one of the same object. Nothing comes after a deletion, and of two
// writes at once, whose answers have overtaken each other, the newer one counts. If the object may be absent now, the
// cache has to be as far as the earlier write all the same, or it would be taken for gone before it has come.
func (l *unseenWrites) note(w write) {
	at := objectID{w.target, w.key, w.uid}
	earlier, known := l.writes[at]
	if known && (earlier.deletes() || w.version != "" && newer(w.version, earlier.version) != w.version) {
		return
	}
	if w.absent {
		w.floor = newer(w.floor, earlier.version)
	}
	l.writes[at] = w
}

// settled tells whether everything has been seen, and forgets what has.
func (l *unseenWrites) allSeen() bool {
	for at, w := range l.writes {
		if w.target.seen(w) {
			delete(l.writes, at)
		}
	}
	return len(l.writes) == 0
}

// unseen returns a write that has not been seen.
func (l *unseenWrites) unseen() (w write) {
	for _, w = range l.writes {
		break
	}
	return w
}

// listen makes the caches that are waited for poke. What a cache that does not change any more lacks is not waited for.
func (l *unseenWrites) subscribe(poke func()) {
	for at := range l.writes {
		if at.target.await(l, poke) {
			l.caches[at.target] = struct{}{}
		} else {
			delete(l.writes, at)
		}
	}
}

func (l *unseenWrites) unsubscribe() {
	for c := range l.caches {
		c.forget(l)
	}
	clear(l.caches)
}
