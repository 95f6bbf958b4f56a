package cachedclient

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// objectID identifies an object in a cache. The UID tells apart objects that had the same name one after the other.
type objectID struct {
	target writeTarget
	key    api.Key
	uid    types.UID
}

// unseenWrites are the writes of one key's reconciles that caches do not show yet, and the callers that wait for them.
// The mutex of its Gate guards it.
type unseenWrites struct {
	writes map[objectID]write // the last write of each object

	subscribed map[writeTarget]struct{} // the caches that report their changes

	callbacks []func()    // of the callers that wait
	waitStart time.Time   // of the first caller
	timer     *time.Timer // ends the wait at the timeout; nil if there is no caller
}

func (u *unseenWrites) isWaiting() bool { return u.timer != nil }

// add records a write instead of an earlier one of the same object. It ignores writes after a delete. It also ignores
// the older one of two concurrent writes, whose answers can arrive in any order. If the object may now be absent, the
// cache must still reach the version of the earlier write: an older cache may not have the object yet.
func (u *unseenWrites) add(w write) {
	id := objectID{w.target, w.key, w.uid}
	earlier, known := u.writes[id]
	if known && (earlier.isDelete() || w.version != "" && newer(w.version, earlier.version) != w.version) {
		return
	}
	if w.absent {
		w.minVersion = newer(w.minVersion, earlier.version)
	}
	u.writes[id] = w
}

// removeSeen forgets the writes that their caches show, and reports whether no write is left.
func (u *unseenWrites) removeSeen() (empty bool) {
	for id, w := range u.writes {
		if id.target.shows(w) {
			delete(u.writes, id)
		}
	}
	return len(u.writes) == 0
}

// anyWrite returns one of the writes.
func (u *unseenWrites) anyWrite() (w write) {
	for _, w = range u.writes {
		break
	}
	return w
}

// subscribe arranges that onChange is called when a cache changes that does not show a write yet. It forgets the writes
// of caches that will not change any more.
func (u *unseenWrites) subscribe(onChange func()) {
	for id := range u.writes {
		if id.target.addWaiter(u, onChange) {
			u.subscribed[id.target] = struct{}{}
		} else {
			delete(u.writes, id)
		}
	}
}

func (u *unseenWrites) unsubscribe() {
	for target := range u.subscribed {
		target.removeWaiter(u)
	}
	clear(u.subscribed)
}
