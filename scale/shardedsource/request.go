package shardedsource

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// request is one list or watch.
type request[T api.Object] struct {
	*decision
	trusted bool // the server cuts, and an object of another shard is an error
}

// request returns the request for o, and changes o: either the server cuts, or the decoder drops the objects of other
// shards.
func (s *Source[T]) request(o *api.Options[T]) *request[T] {
	r := &request[T]{decision: s.decision, trusted: s.trusts()}
	o.ShardSelector = ""
	if r.trusted {
		o.ShardSelector = s.text
	} else {
		o.Keep = r.keep(o.Keep)
	}
	if report := o.OnUndecodable; report != nil {
		o.OnUndecodable = func(e *api.UndecodableError) error {
			if e.UID != "" || s.byNamespace {
				if keep, err := r.judge(e.Key.Namespace, e.UID); !keep {
					return err
				}
			}
			return report(e)
		}
	}
	return r
}

// keep returns the Keep of a request that the server does not cut. and may be nil.
func (r *request[T]) keep(and func(namespace, uid []byte) bool) func(namespace, uid []byte) bool {
	return func(namespace, uid []byte) bool {
		if !r.selectsBytes(namespace, uid) {
			r.dropped.Add(1)
			return false
		}
		return and == nil || and(namespace, uid)
	}
}

var errNoUID = errors.New("shardedsource: an object without metadata.uid; the type of the objects must keep it")

// checked reports whether an object belongs to the shard.
func (r *request[T]) checked(object T) (keep bool, err error) {
	if object.GetUID() == "" && !r.byNamespace {
		return false, fmt.Errorf("%w: %T %s", errNoUID, object, api.FormatKey(api.KeyOf(object)))
	}
	return r.judge(object.GetNamespace(), object.GetUID())
}

// judge reports whether an object belongs to the shard. If the server cuts, and the object does not belong to it, it
// returns an error.
func (r *request[T]) judge(namespace string, uid types.UID) (keep bool, err error) {
	switch {
	case r.selects(namespace, uid):
		return true, nil
	case r.trusted:
		return false, fmt.Errorf("%w: it sent an object of another shard", ErrGarbled)
	}
	r.dropped.Add(1)
	return false, nil
}

// failed notes the error of a request. If the answer contradicts the shardSelector, the server may have left out
// objects. For a watch, failed then returns an error that makes a reflector list again.
func (r *request[T]) failed(err error) error {
	if !r.trusted || !errors.Is(err, ErrGarbled) && !apierrors.IsBadRequest(err) {
		return err
	}
	r.distrust(err)
	return fmt.Errorf("%w: %w", apierrors.NewResourceExpired("shardedsource: the objects must be listed again"), err)
}
