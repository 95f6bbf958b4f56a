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

// ErrMalformed matches the UndecodableError of an object that cannot belong to the collection: it has no name, its
// namespace is missing or wrong, or its name or namespace contains a slash or is not UTF-8.
var ErrMalformed = errors.New("reflector: the object cannot belong to the collection")

// The reasons. They contain nothing of the object and are allocated once.
var (
	errNoName        = fmt.Errorf("%w: it has no name", ErrMalformed)
	errNoNamespace   = fmt.Errorf("%w: it has no namespace", ErrMalformed)
	errClusterScoped = fmt.Errorf("%w: it has a namespace, but the resource is cluster-scoped", ErrMalformed)
	errBadName       = fmt.Errorf("%w: its name contains a slash or is not UTF-8", ErrMalformed)
	errBadNamespace  = fmt.Errorf("%w: its namespace contains a slash or is not UTF-8", ErrMalformed)
	errForeign       = fmt.Errorf("%w: it is in another namespace", ErrMalformed)
)

// scope says which keys the objects of a collection can have.
type scope struct {
	namespaced, clusterScoped bool   // not both; neither if the resource is unknown
	namespace                 string // the only namespace of the collection; empty for all
}

// scopeOf returns the scope of a collection.
func scopeOf(c api.Collection) scope {
	r := c.Resource
	return scope{namespaced: r.Namespaced, clusterScoped: !r.Namespaced && r.Plural != "", namespace: c.Namespace}
}

func (r *Reflector[T]) resource() api.Resource { return r.lw.Collection().Resource }

// check returns the reason why no object of the collection can have this key, or nil. It does not allocate.
func (c scope) check(key api.Key) error {
	switch {
	case key.Name == "":
		return errNoName
	case !isClean(key.Name):
		return errBadName
	case key.Namespace == "" && c.namespaced:
		return errNoNamespace
	case key.Namespace == c.namespace || key.Namespace == "":
		return nil
	case c.clusterScoped:
		return errClusterScoped
	case !isClean(key.Namespace):
		return errBadNamespace
	case c.namespace != "":
		return errForeign
	}
	return nil
}

// isClean reports whether a name or namespace can be part of a path and of a formatted key. A JSON decoder replaces
// bytes that are not UTF-8 by U+FFFD, so several names may have become one.
func isClean(part string) bool {
	return strings.IndexByte(part, '/') < 0 && utf8.ValidString(part) && !strings.Contains(part, "\uFFFD")
}

// malformed returns the error for an object that scope.check refused. The error contains only what a log may contain.
func (r *Reflector[T]) malformed(key api.Key, uid types.UID, version string, kind apiwatch.EventType, reason error) *api.UndecodableError {
	return &api.UndecodableError{
		Resource: r.resource(), Key: api.Key{Namespace: excerpt(key.Namespace), Name: excerpt(key.Name)},
		UID: types.UID(excerpt(string(uid))), ResourceVersion: excerpt(version), Type: kind, Err: reason,
	}
}

// excerpt returns the beginning of a string as valid UTF-8. It shares no memory with the string, which may be large.
func excerpt(s string) string {
	const most = 253 // the longest name in Kubernetes, in bytes
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}

// maxMalformedLogged is how many malformed objects of one list or watch are logged.
const maxMalformedLogged = 10

// noteMalformed counts and reports a malformed object. An error that it returns ends Run.
func (r *Reflector[T]) noteMalformed(e *api.UndecodableError) error {
	r.status.malformed(e)
	if r.o.OnUndecodable != nil {
		err := r.o.OnUndecodable(e)
		if err != nil {
			r.fatal = err
		}
		return err
	}
	if r.malformedLogged++; r.malformedLogged <= maxMalformedLogged {
		r.log.Warn("malformed object", zap.String("key", api.FormatKey(e.Key)), zap.String("rv", e.ResourceVersion),
			zap.NamedError("err", e.Err))
	}
	return nil
}

// skipMalformed skips an object of a list or of a watch. It changes no known object: without a valid key, the reflector
// cannot know which object this state belongs to. list is the list in progress, or nil.
func (r *Reflector[T]) skipMalformed(e *api.UndecodableError, list *staging[T]) error {
	if list != nil {
		list.incomplete = list.incomplete || e.Err != errForeign
		list.skipped++
		if err := r.checkLen(list); err != nil {
			return err
		}
	}
	return r.noteMalformed(e)
}

// merge gives the store a list that contains an object without a valid key. That object may be any object that the list
// lacks, so merge deletes nothing. The price: deletions that no watch reported stay unnoticed until a list without such
// an object.
func (r *Reflector[T]) merge(list []T, version string) {
	r.log.Warn("the list has objects without a valid key, so it deletes no object", zap.String("rv", version))
	for _, object := range list {
		if known, _ := r.store.Get(api.KeyOf(object)); !api.Identical(known, object) {
			r.store.Put(object, "") // the version is reached only after the last object
		}
	}
	r.store.Bookmark(version)
}
