package codec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/internal/quote"
)

// answer is what all formats know of one answer, and decides what happens with its objects. It belongs to the goroutine
// that reads the answer.
type answer struct {
	ended    func() error // the error of the caller's context
	target   *target
	window   scan.Window
	resource api.Resource

	// apiVersion and kind are set in objects that omit them. They come from the resource, or from the list's kind.
	apiVersion, kind string
	// strict means that they come from the resource, so an object of another kind is an error.
	strict bool
	// odd is the error of a list whose kind is neither the usual one nor certainly wrong; see checkList. It is nil for
	// any other list, and before the kind has arrived.
	odd error
	// doubtful means that an item did not name the requested kind.
	doubtful bool

	// These are the fields of api.Options, with any in place of T. known and onUndecodable may be nil.
	drop, share   bool
	keep          func(namespace, uid []byte) bool // may be nil
	known         func(namespace, name []byte) (any, bool)
	onUndecodable func(*api.UndecodableError) error

	each func(obj any) error // gets the items of a list
}

func (d *decoder) answer(ctx context.Context, r io.Reader, resource *api.Resource) *answer {
	a := &answer{ended: ctx.Err, target: &d.target, window: scan.NewWindow(r, d.limit), resource: *resource}
	if resource.Kind != "" && !d.target.isStatus {
		a.apiVersion, a.kind, a.strict = resource.GroupVersion().String(), resource.Kind, true
	}
	return a
}

// item decodes one of many objects, or returns the object that the caller already holds. event is empty for an item of
// a list. If ok is false and err is nil, the object is skipped: the caller does not want it, or knows that it cannot be
// decoded.
func (a *answer) item(o encoded, event watch.EventType) (obj any, version string, ok bool, err error) {
	if a.keep != nil || a.known != nil {
		id := o.identity()
		if a.keep != nil && id.certain && !a.keep(id.namespace, id.uid) {
			return nil, "", false, nil
		}
		if obj, version, ok = a.reuse(id, event); ok {
			return obj, version, true, nil
		}
	}
	apiVersion, kind := o.typeMeta()
	err = a.check(apiVersion, kind)
	a.doubtful = a.doubtful || err != nil || len(kind) == 0
	if a.doubtful && a.odd != nil {
		return nil, "", false, a.odd
	}
	if err == nil {
		obj, err = a.decode(o, a.drop)
	}
	if err != nil {
		return nil, "", false, a.report(o.identity(), event, err)
	}
	if version = versionOf(obj); version == "" && event != "" {
		version = string(o.identity().version)
	}
	return obj, version, true, nil
}

// single decodes the only object of an answer.
func (a *answer) single(o encoded) (any, error) {
	apiVersion, kind := o.typeMeta()
	if !a.target.isStatus && isStatusKind(apiVersion, kind) {
		return nil, a.statusError(o)
	}
	if err := a.check(apiVersion, kind); err != nil {
		return nil, err
	}
	obj, err := a.decode(o, false)
	if err != nil {
		return nil, a.failed(o.identity(), "", err)
	}
	return obj, nil
}

// decode decodes one object and sets the apiVersion and kind that it omits.
func (a *answer) decode(o encoded, drop bool) (any, error) {
	if a.target.pack != nil {
		return a.target.pack(a, o, drop)
	}
	obj, err := o.decode(drop)
	if err == nil {
		a.target.complete(obj, a.apiVersion, a.kind, a.strict)
	}
	return obj, err
}

// versionOf returns the resource version that obj keeps. T need not keep it; then the watch uses the peeked version.
func versionOf(obj any) string {
	if o, ok := obj.(api.Object); ok {
		return o.GetResourceVersion()
	}
	return ""
}

// reuse returns the object that the caller already holds, and its version, if UID and version are equal. It never
// reuses an object in a delete event, because the event has the last state.
func (a *answer) reuse(id identity, event watch.EventType) (obj any, version string, ok bool) {
	if a.known == nil || event == watch.Deleted || !id.certain || len(id.name) == 0 || len(id.uid) == 0 || len(id.version) == 0 {
		return nil, "", false
	}
	obj, ok = a.known(id.namespace, id.name)
	if !ok {
		return nil, "", false
	}
	o, ok := obj.(api.Object)
	if !ok || string(o.GetUID()) != string(id.uid) || o.GetResourceVersion() != string(id.version) {
		return nil, "", false
	}
	return obj, o.GetResourceVersion(), true
}

// check compares the apiVersion and kind of an object with those that were requested. Metadata may have a kind of its
// own.
func (a *answer) check(apiVersion, kind []byte) error {
	switch {
	case !a.strict || len(kind) == 0:
		return nil
	case string(kind) == a.kind && (len(apiVersion) == 0 || string(apiVersion) == a.apiVersion):
		return nil
	case a.target.metadataOnly && string(kind) == "PartialObjectMetadata" && bytes.HasPrefix(apiVersion, []byte(metaGroup)):
		return nil
	default:
		return a.unexpected(string(apiVersion), string(kind))
	}
}

// checkList compares the apiVersion and kind of a list with those that were requested. The kind may be missing, and it
// may be List of v1, which contains objects of any kind. The definition of a custom resource names the kind of its
// lists freely. So in a group that may have custom resources, a list of another kind is accepted as long as each of
// its items names the requested kind. An empty list of such a kind is accepted too.
func (a *answer) checkList(apiVersion, kind string) error {
	a.odd = nil
	switch {
	case !a.strict,
		kind == genericList && (apiVersion == "v1" || apiVersion == ""),
		a.target.metadataOnly && kind == "PartialObjectMetadataList" && strings.HasPrefix(apiVersion, metaGroup):
		return nil
	case apiVersion != "" && apiVersion != a.apiVersion:
		return a.unexpected(apiVersion, kind)
	case kind == "" || kind == a.kind+"List":
		return nil
	case !strings.Contains(a.resource.Group, "."): // kube-apiserver accepts no custom resources in such a group
		return a.unexpected(apiVersion, kind)
	}
	a.odd = a.unexpected(apiVersion, kind)
	if a.doubtful {
		return a.odd
	}
	return nil
}

// genericList is the kind of a list of objects that name their own kinds.
const genericList = "List"

// metaGroup is the prefix of the apiVersion of Table and PartialObjectMetadata.
const metaGroup = "meta.k8s.io/"

func (a *answer) unexpected(apiVersion, kind string) error {
	return &KindError{Resource: a.resource, APIVersion: quote.Short(apiVersion, maxQuoted), Kind: quote.Short(kind, maxQuoted)}
}

// report passes an object that cannot be decoded to OnUndecodable. Its result decides whether to continue.
func (a *answer) report(id identity, event watch.EventType, err error) error {
	err = a.failed(id, event, err)
	if u, ok := err.(*api.UndecodableError); ok && a.onUndecodable != nil {
		return a.onUndecodable(u)
	}
	return err
}

// failed returns the error of an object that cannot be decoded, or the error of a context that has ended.
func (a *answer) failed(id identity, event watch.EventType, err error) error {
	if err := a.ended(); err != nil {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New(err.Error()) // the object ends too early, but the answer does not
	}
	if len(id.name) == 0 {
		return malformed(a.window.Offset(), "%w: %w", errNameless, err)
	}
	return &api.UndecodableError{
		Resource: a.resource, Key: id.key(), UID: types.UID(kept(id.uid)), ResourceVersion: kept(id.version), Type: event, Err: err,
	}
}

var errNameless = errors.New("an undecodable object without a name")

// statusError returns the error of a Status that was sent instead of the requested object.
func (a *answer) statusError(o encoded) error {
	status, err := o.status()
	if err != nil {
		return malformed(a.window.Offset(), "status: %w", err)
	}
	if status == nil || status.Status == metav1.StatusSuccess {
		apiVersion, kind := o.typeMeta()
		return a.unexpected(string(apiVersion), string(kind))
	}
	limitStatus(status)
	return &apierrors.StatusError{ErrStatus: *status}
}

// isTable reports whether the server answered with a printed Table instead of objects.
func isTable(apiVersion, kind string) bool {
	return strings.HasPrefix(apiVersion, metaGroup) && (kind == "Table" || kind == "TableList")
}

// identity is the part of an object that is read before the rest. The bytes alias the answer.
type identity struct {
	namespace, name, uid, version []byte
	// certain means that a decoder would read the same values. It is false if names are repeated.
	certain bool
}

// maxIdentity limits each value of the metadata in an error, in bytes. The longest name has 253.
const maxIdentity = 256

func (id identity) key() api.Key {
	return api.Key{Namespace: kept(id.namespace), Name: kept(id.name)}
}

// kept returns the beginning of a value, for an error that outlives the answer.
func kept(value []byte) string {
	return quote.Short(string(value[:min(len(value), maxIdentity+1)]), maxIdentity)
}
