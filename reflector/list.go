package reflector

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// listing is a list in pages that is in progress.
type listing[T api.Object] struct {
	staged *staging[T]
	since  time.Time // the time of the first request
	// version is the version of the first page. If later pages are newer, the watch repeats the changes in between, so
	// no change is lost.
	version string
}

// maxListTime bounds a list in pages. In kube-apiserver a continue token is valid for five minutes and a list request
// takes at most one, so a list that ends takes a fraction of this time. A WatchList may take as long as a watch.
const maxListTime = time.Hour

// defaultMaxListObjects is several times the number of objects that the largest clusters have of one resource.
const defaultMaxListObjects = 5_000_000

// fetchPage fetches the next page of a list into l. After the last page it gives the list to the store.
func (r *Reflector[T]) fetchPage(ctx context.Context, s *state, l *listing[T], res *result) error {
	if s.list.token == "" {
		*l = listing[T]{staged: stagingFor[T](r.store.KnownLen()), since: time.Now()}
		r.undecodable.beginList()
	}
	before, skipped := len(l.staged.objects), l.staged.skipped
	meta, items, err := r.requestPage(ctx, s, l)
	isNew := len(l.staged.objects) > before || l.staged.skipped > skipped
	if err == nil && meta.Continue != "" && (meta.Continue == s.list.token || items > 0 && !isNew) {
		err = ErrSamePage
	}
	if err != nil {
		l.staged.truncate(before) // the next request may be for the same page
		return err
	}
	l.version = cmp.Or(l.version, meta.ResourceVersion)
	if meta.Continue != "" {
		r.status.remaining(meta.RemainingItemCount)
		*res = result{token: meta.Continue, items: items, paged: s.listVersion() == "0"}
		return nil
	}
	if err := r.commit(s, l.staged, l.version); err != nil {
		return err
	}
	*res = result{synced: true, version: l.version}
	return nil
}

// requestPage makes the request. It fails if no new object arrives for pageIdle, and if the list takes maxListTime.
func (r *Reflector[T]) requestPage(ctx context.Context, s *state, l *listing[T]) (meta metav1.ListMeta, items int, err error) {
	ctx, dog := newWatchdog(ctx)
	defer dog.stop()
	idle := dog.after(pageIdle)
	dog.after(time.Until(l.since.Add(maxListTime)))
	to := l.staged
	o := r.options(s)
	o.OnUndecodable = func(e *api.UndecodableError) error {
		idle.Reset(pageIdle)
		items++
		if reason := r.scope.check(e.Key); reason != nil {
			return r.skipMalformed(r.malformed(e.Key, e.UID, e.ResourceVersion, "", reason), to)
		}
		return r.stageUndecodable(e, to)
	}
	meta, err = r.lw.List(ctx, o, func(object T) error {
		items++
		if reason := r.scope.check(api.KeyOf(object)); reason != nil {
			idle.Reset(pageIdle)
			return r.skipMalformed(r.malformed(api.KeyOf(object), object.GetUID(), object.GetResourceVersion(), "", reason), to)
		}
		before := len(to.objects)
		err := r.stage(object, s, to)
		if len(to.objects) > before {
			idle.Reset(pageIdle)
		}
		return err
	})
	if err != nil && stalled(ctx) {
		err = r.timeoutError(l.since, to)
	}
	return meta, items, err
}

// timeoutError returns the error of a list that the watchdog cancelled.
func (r *Reflector[T]) timeoutError(since time.Time, list *staging[T]) error {
	if time.Since(since) >= maxListTime {
		return fmt.Errorf("%w: %d objects came in %s", ErrEndlessList, len(list.objects), maxListTime)
	}
	return ErrStalled
}

// checkLen returns an error if a list has more than Options.MaxListObjects objects.
func (r *Reflector[T]) checkLen(list *staging[T]) error {
	if n := len(list.objects) + list.skipped; n > r.o.MaxListObjects {
		return fmt.Errorf("%w: it has more than %d objects (MaxListObjects)", ErrEndlessList, r.o.MaxListObjects)
	}
	return nil
}

// commit gives a complete list to the store, unless it is older than the version reached. If an older list is a
// consistent read, errRolledBack leads to another list, without reuse: after a restore from a backup the server counts
// up to the same versions again, with other content.
func (r *Reflector[T]) commit(s *state, staged *staging[T], version string) error {
	switch {
	case s.list.need == acceptRollback && !older(version, s.version):
	case s.list.need == acceptRollback:
		r.log.Warn("the server was restored from a backup", zap.String("rv", version), zap.String("known", s.version))
	case !older(version, s.version):
	case s.list.need == consistentRead:
		return errRolledBack
	default:
		return ErrBackwards
	}
	list := staged.objects
	if staged.incomplete && r.store.KnownLen() > 0 {
		r.merge(list, version)
	} else {
		r.store.Replace(list, version)
	}
	r.undecodable.endList()
	r.status.listed(len(list), version)
	r.leaveGate()
	return nil
}

// older reports whether version a is older than b. It is false if the versions have no order.
func older(a, b string) bool {
	order, ok := api.CompareVersions(a, b)
	return ok && order < 0
}

// stage adds an object of a list to to. The known object of the same version replaces it; any other is transformed.
func (r *Reflector[T]) stage(object T, s *state, to *staging[T]) error {
	key := api.KeyOf(object)
	if known, reused := r.reuse(key, object, s); reused {
		object = known
	} else {
		transformed, bad := r.transform(object, "")
		if bad != nil {
			return r.stageUndecodable(bad, to)
		}
		object = transformed
	}
	to.put(object)
	r.status.received(len(to.objects))
	return r.checkLen(to)
}

// stageUndecodable adds the last good state of an object whose state in the list cannot be decoded. It does not if that
// state belongs to another object of the same name, or is newer, because a restore from a backup has undone it then.
func (r *Reflector[T]) stageUndecodable(e *api.UndecodableError, to *staging[T]) error {
	if err := r.noteUndecodable(e); err != nil {
		return err
	}
	to.skipped++
	if err := r.checkLen(to); err != nil {
		return err
	}
	if staged, exists := to.get(e.Key); exists {
		if isAnother(staged, e.UID) {
			to.remove(e.Key)
		}
		return nil
	}
	if known, exists := r.store.Get(e.Key); exists && !isAnother(known, e.UID) && !older(e.ResourceVersion, known.GetResourceVersion()) {
		to.put(known)
	}
	return nil
}

// isAnother reports whether uid belongs to another object than this one.
func isAnother(object api.Object, uid types.UID) bool {
	return uid != "" && object.GetUID() != "" && object.GetUID() != uid
}
