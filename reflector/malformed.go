package reflector

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// ErrMalformed is matched by the UndecodableError of an object that cannot belong to the collection: it has no name, it
// lacks a namespace or has one that it must not have, or its name or namespace contains a slash or is not UTF-8.
var ErrMalformed = errors.New("reflector: the object cannot belong to the collection")

// The reasons. They quote nothing, and are allocated once.
var (
	errNoName        = fmt.Errorf("%w: it has no name", ErrMalformed)
	errNoNamespace   = fmt.Errorf("%w: it has no namespace", ErrMalformed)
	errClusterScoped = fmt.Errorf("%w: it has a namespace, and the resource has none", ErrMalformed)
	errBadName       = fmt.Errorf("%w: its name contains a slash or is not UTF-8", ErrMalformed)
	errBadNamespace  = fmt.Errorf("%w: its namespace contains a slash or is not UTF-8", ErrMalformed)
	errForeign       = fmt.Errorf("%w: it is in another namespace", ErrMalformed)
)

// scope is which keys the objects of a collection can have.
type scope struct {
	namespaced bool
	namespace  string // that all of them are in; empty for any
}

// scopeOf asks a ListerWatcher. One that does not say which namespace it is confined to may bring any.
func scopeOf[T any](lw api.ListerWatcher[T]) scope {
	c := scope{namespaced: lw.Resource().Namespaced}
	if confined, ok := lw.(interface{ Namespace() string }); ok {
		c.namespace = confined.Namespace()
	}
	return c
}

// check returns why no object of the collection can have a key, or nil. It does not allocate.
func (c scope) check(key api.Key) error {
	switch {
	case key.Name == "":
		return errNoName
	case !isClean(key.Name):
		return errBadName
	case !c.namespaced && key.Namespace != "":
		return errClusterScoped
	case !c.namespaced || key.Namespace == c.namespace && key.Namespace != "":
		return nil
	case key.Namespace == "":
		return errNoNamespace
	case !isClean(key.Namespace):
		return errBadNamespace
	case c.namespace != "":
		return errForeign
	}
	return nil
}

// isClean reports whether a part of a key can be part of a path and of a formatted key. A decoder of JSON puts U+FFFD where
// it finds bytes that are not UTF-8, so that several names may have become one.
func isClean(part string) bool {
	return strings.IndexByte(part, '/') < 0 && utf8.ValidString(part) && !strings.Contains(part, "\uFFFD")
}

// malformed describes an object that scope.check refused. It holds no more of the object than may stand in a log.
func (r *Reflector[T]) malformed(key api.Key, uid types.UID, version string, kind apiwatch.EventType, reason error) *api.UndecodableError {
	return &api.UndecodableError{
		Resource: r.lw.Resource(), Key: api.Key{Namespace: excerpt(key.Namespace), Name: excerpt(key.Name)},
		UID: types.UID(excerpt(string(uid))), ResourceVersion: excerpt(version), Type: kind, Err: reason,
	}
}

// excerpt is the beginning of a string as valid UTF-8. It shares no memory with the string, which may be large.
func excerpt(s string) string {
	const most = 253 // bytes of a name in Kubernetes
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}

// maxNamed is how many malformed objects of a list or a watch are logged one by one.
const maxNamed = 10

// noteMalformed counts and reports an object that is not let in. The error that it returns ends Run.
func (r *Reflector[T]) noteMalformed(e *api.UndecodableError) error {
	r.status.malformed(e)
	if r.o.OnUndecodable != nil {
		err := r.o.OnUndecodable(e)
		if err != nil {
			r.fatal = err
		}
		return err
	}
	if r.named++; r.named <= maxNamed {
		r.log.Warn("malformed object", zap.String("key", api.FormatKey(e.Key)), zap.String("rv", e.ResourceVersion),
			zap.NamedError("err", e.Err))
	}
	return nil
}

// refuse leaves out an object of a list or of a watch. What is known is not touched: where the key of the object is not
// known, neither is whose state it would have been. list is the list in progress, or nil.
func (r *Reflector[T]) refuse(e *api.UndecodableError, list *staging[T]) error {
	if list != nil {
		list.incomplete = list.incomplete || e.Err != errForeign
		if list.skipped++; r.checkLen(list) != nil {
			return r.checkLen(list)
		}
	}
	return r.noteMalformed(e)
}

// merge gives the store a list of which an object has no key: what the list lacks may be that object, so nothing is
// deleted. The price is that deletions which the watch has missed as well stay unnoticed until a list without such an
// object.
func (r *Reflector[T]) merge(list []T, version string) {
	r.log.Warn("list has objects without a key: what it lacks is kept", zap.String("rv", version))
	for _, object := range list {
		if known, exists := r.store.Get(api.KeyOf(object)); !exists || !isSame(known, object) {
			r.store.Put(object, "") // the version is reached with the last one
		}
	}
	r.store.Bookmark(version)
}
