package reflector

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// fetchPage fetches the next page of a list into pages, and hands them all to the store when it was the last.
func (r *Reflector[T]) fetchPage(ctx context.Context, s state, pages *staging[T]) (outcome, error) {
	if s.pages == 0 {
		*pages = staging[T]{}
		r.undecodable.beginList()
	}
	o := r.options(s)
	o.OnUndecodable = func(e *api.UndecodableError) error { return r.stageUndecodable(e, pages.add) }
	meta, err := r.lw.List(ctx, o, func(object T) error {
		return r.stage(object, pages.add)
	})
	if err != nil {
		return outcome{}, err
	}
	r.status.remaining(meta)
	if meta.Continue != "" {
		paged := s.token == "" && o.ResourceVersion == "0"
		return outcome{token: meta.Continue, paged: paged}, nil
	}
	version, err := r.commit(s, pages.objects, meta.ResourceVersion)
	*pages = staging[T]{}
	return outcome{synced: true, version: version}, err
}

// commit hands a complete list to the store, unless it is older than what is known and nobody said that it is the truth.
func (r *Reflector[T]) commit(s state, list []T, version string) (string, error) {
	if older(version, s.version) {
		if !s.consistent {
			return "", errBackwards
		}
		r.log.Warn("server went back", zapVersion(version), zapKnown(s.version))
	}
	r.store.Replace(list, version)
	r.undecodable.endList()
	r.status.listed(len(list), version)
	return version, nil
}

// older tells whether version a is surely older than b.
func older(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	order, ok := api.CompareVersions(a, b)
	return ok && order < 0
}

// stage passes an object of a list on to add, transformed if it is not the stored one already.
func (r *Reflector[T]) stage(object T, add func(T)) error {
	known, exists := r.store.Get(api.KeyOf(object))
	if exists && !r.o.NoReuse && api.SameVersion(known, object) {
		add(known)
		r.status.received()
		return nil
	}
	object, bad := r.transform(object, "")
	if bad != nil {
		return r.stageUndecodable(bad, add)
	}
	add(object)
	r.status.received()
	return nil
}

// stageUndecodable keeps the last good state of an object that the list has in a state which cannot be decoded.
func (r *Reflector[T]) stageUndecodable(e *api.UndecodableError, add func(T)) error {
	if err := r.noteUndecodable(e); err != nil {
		return err
	}
	if known, exists := r.store.Get(e.Key); exists {
		add(known)
	}
	return nil
}

func (s *staging[T]) add(object T) { s.objects = append(s.objects, object) }

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
