package referenced

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/runstate"
)

const (
	fetchTimeout = time.Minute
	backoffBase  = 800 * time.Millisecond // as reflector.Tuning
	backoffMax   = 30 * time.Second
)

var (
	errOld      = errors.New("referenced: the server answered with a state that is older than its metadata")
	errIdentity = errors.New("referenced: the transform changed the namespace, the name, the UID or the version")
)

// want makes an object wait for a request, unless a request is in flight or due.
func (s *Set[T]) want(e *entry[T]) {
	if !e.queued && !e.running && e.timer == nil {
		e.queued = true
		s.waiting = append(s.waiting, e)
	}
}

// send begins the requests that the bound allows.
func (s *Set[T]) send() {
	for s.state == runstate.Running && s.fetching < s.o.MaxFetches && len(s.waiting) > 0 {
		e := s.waiting[0]
		s.waiting = s.waiting[1:]
		e.queued = false
		if e.gone || e.isExact() || e.ahead != nil {
			continue
		}
		e.running, e.changed, e.discard = true, false, false
		s.fetching++
		s.request(e)
	}
}

// fetch requests an object, and takes over the answer.
func (s *Set[T]) fetch(ctx context.Context, e *entry[T]) {
	object, err := s.read(ctx, e.key)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !apierrors.IsNotFound(err) { // the deletion is on its way
		s.report(err)
	}
	s.begin()
	defer s.commit()
	s.finish(e, object, err)
}

func (s *Set[T]) read(ctx context.Context, key api.Key) (object T, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	object, err = s.client.Get(ctx, key, metav1.GetOptions{})
	if err != nil {
		return object, err
	}
	managed, ok := any(object).(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	})
	if ok && !s.o.KeepManagedFields && codec.RefuseMasked(object) == nil { // the mark of a mask is there
		managed.SetManagedFields(nil)
	}
	if s.o.Transform == nil {
		return object, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = api.Recovered(p)
		}
	}()
	id := identityOf(object)
	if object, err = s.o.Transform(object); err == nil && (identityOf(object) != id || api.KeyOf(object) != key) {
		err = errIdentity
	}
	return object, err
}

// report calls OnError, one call at a time.
func (s *Set[T]) report(err error) {
	if s.o.OnError == nil {
		return
	}
	s.onError.Lock()
	defer s.onError.Unlock()
	s.o.OnError(err)
}

// fail notes that a request failed. The next one follows after a pause, even if the object changes meanwhile.
func (s *Set[T]) fail(e *entry[T], err error) {
	e.err = err
	e.attempt++
	if e.attempt == 1 && !apierrors.IsNotFound(err) {
		s.log.Warn("a referenced object is not fetched", zap.String("key", api.FormatKey(e.key)), zap.NamedError("err", err))
	}
	if s.state != runstate.Running {
		return
	}
	e.timer = time.AfterFunc(s.pause(e.attempt), func() {
		s.begin()
		defer s.commit()
		if e.timer != nil {
			e.timer = nil
			s.want(e)
		}
	})
}

// pause returns the pause after a failure. It doubles from the base to the maximum. Jitter adds at most the pause
// itself.
func (s *Set[T]) pause(attempt int) time.Duration {
	pause, longest := cmp.Or(s.o.BackoffBase, backoffBase), cmp.Or(s.o.BackoffMax, backoffMax)
	for ; attempt > 1 && pause < longest; attempt-- {
		pause *= 2
	}
	pause = min(pause, longest)
	return pause + time.Duration(rand.Float64()*float64(pause))
}
