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

// listing is a list in pages that is under way.
type listing[T api.Object] struct {
	staged *staging[T]
	since  time.Time // when the first page was asked for
	// version is that of the first page. A server whose later pages are newer loses nothing so: the watch brings what
	// happened in between once more.
	version string
}

// maxListTime bounds a list in pages. Continue tokens of kube-apiserver last for five minutes, and a request for a list for
// one, so a list that ends takes a fraction of it. A streaming list may take as long as a watch.
const maxListTime = time.Hour

// defaultMaxListObjects is several times what the largest clusters hold of one resource.
const defaultMaxListObjects = 5_000_000

// fetchPage fetches the next page of a list into l, and hands all of them to the store when it was the last.
func (r *Reflector[T]) fetchPage(ctx context.Context, s state, l *listing[T]) (outcome, error) {
	if s.pages == 0 {
		*l = listing[T]{staged: stagingFor[T](r.store.KnownLen()), since: time.Now()}
		r.undecodable.beginList()
	}
	before, skipped := len(l.staged.objects), l.staged.skipped
	meta, items, err := r.requestPage(ctx, s, l)
	isNew := len(l.staged.objects) > before || l.staged.skipped > skipped
	if err == nil && meta.Continue != "" && (meta.Continue == s.token || items > 0 && !isNew) {
		err = ErrSamePage
	}
	if err != nil {
		l.staged.truncate(before) // the same page may be asked for again
		return outcome{}, err
	}
	l.version = cmp.Or(l.version, meta.ResourceVersion)
	r.status.remaining(meta)
	if meta.Continue != "" {
		return outcome{token: meta.Continue, items: items, paged: s.pages == 0 && s.listVersion() == "0"}, nil
	}
	if err := r.commit(s, l.staged, l.version); err != nil {
		return outcome{}, err
	}
	return outcome{synced: true, version: l.version}, nil
}

// requestPage makes the request. It gives up when nothing new arrives for too long, and when the list has no end.
func (r *Reflector[T]) requestPage(ctx context.Context, s state, l *listing[T]) (meta metav1.ListMeta, items int, err error) {
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
			return r.refuse(r.malformed(e.Key, e.UID, e.ResourceVersion, "", reason), to)
		}
		return r.stageUndecodable(e, to)
	}
	meta, err = r.lw.List(ctx, o, func(object T) error {
		items++
		if reason := r.scope.check(api.KeyOf(object)); reason != nil {
			idle.Reset(pageIdle)
			return r.refuse(r.malformed(api.KeyOf(object), object.GetUID(), object.GetResourceVersion(), "", reason), to)
		}
		before := len(to.objects)
		err := r.stage(object, s, to)
		if len(to.objects) > before {
			idle.Reset(pageIdle)
		}
		return err
	})
	if err != nil && stalled(ctx) {
		err = r.gaveUp(l.since, to)
	}
	return meta, items, err
}

// gaveUp is the error of a list that the watchdog ended.
func (r *Reflector[T]) gaveUp(since time.Time, list *staging[T]) error {
	if time.Since(since) >= maxListTime {
		return fmt.Errorf("%w: it brought %d objects in %s", ErrEndlessList, len(list.objects), maxListTime)
	}
	return ErrStalled
}

// checkLen ends a list that brings more than Options.MaxListObjects.
func (r *Reflector[T]) checkLen(list *staging[T]) error {
	if n := len(list.objects) + list.skipped; n > r.o.MaxListObjects {
		return fmt.Errorf("%w: it brought more than %d objects (MaxListObjects)", ErrEndlessList, r.o.MaxListObjects)
	}
	return nil
}

// commit hands a complete list to the store, unless it is older than what is known. One that is, and is the truth, is
// asked for once more without reuse: a server that was set back counts up to the same versions again.
func (r *Reflector[T]) commit(s state, staged *staging[T], version string) error {
	switch {
	case s.rewound:
		r.log.Warn("server went back", zap.String("rv", version), zap.String("known", s.version))
	case !older(version, s.version):
	case s.consistent:
		return errRewound
	default:
		return ErrBackwards
	}
	list := staged.objects
	switch {
	case staged.incomplete && r.store.KnownLen() > 0:
		r.merge(list, version)
	case r.reuses(s):
		r.store.Replace(list, version)
	default:
		r.store.Overwrite(list, version)
	}
	r.undecodable.endList()
	r.status.listed(len(list), version)
	return nil
}

// older tells whether version a is surely older than b.
func older(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	order, ok := api.CompareVersions(a, b)
	return ok && order < 0
}

// stage puts an object of a list into to, transformed if it is not the stored one already.
func (r *Reflector[T]) stage(object T, s state, to *staging[T]) error {
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

// stageUndecodable keeps the last good state of an object that the list has in a state which cannot be decoded, unless
// it is the state of another object of that name, or of a future that a server which went back has undone.
func (r *Reflector[T]) stageUndecodable(e *api.UndecodableError, to *staging[T]) error {
	if err := r.noteUndecodable(e); err != nil {
		return err
	}
	if to.skipped++; r.checkLen(to) != nil {
		return r.checkLen(to)
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

// isAnother tells whether the object of that UID is not this one, but has its name.
func isAnother(object api.Object, uid types.UID) bool {
	return uid != "" && object.GetUID() != "" && object.GetUID() != uid
}

// remainingItems is how many items the server says are still to come, or -1 when it does not say.
func remainingItems(meta metav1.ListMeta) int64 {
	switch {
	case meta.RemainingItemCount != nil:
		return *meta.RemainingItemCount
	case meta.Continue == "":
		return 0
	default:
		return -1
	}
}
