package codec

import (
	"bytes"
	"context"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// decoder is the common state of one answer's objects. It belongs to the goroutine that reads the answer.
type decoder[T any] struct {
	ended    func() error // the error of the caller's context
	plan     *plan[T]
	window   *window
	resource api.Resource
	options  api.Options[T]

	// apiVersion and kind are set in objects that omit them. They come from the resource, or from the list's kind.
	apiVersion, kind string
	// strict means that they come from the resource, so an object of another kind is an error.
	strict bool

	json jsonReader
	wire wireReader
}

func (c *Codec[T]) decoder(ctx context.Context, w *window, resource api.Resource, o api.Options[T]) decoder[T] {
	d := decoder[T]{ended: ctx.Err, plan: &c.plan, window: w, resource: resource, options: o}
	d.json = jsonReader{strings: c.plan.strings, scratch: &scratch{}, breaks: breaks{ended: d.ended}}
	d.wire = wireReader{strings: c.plan.strings, scratch: &scratch{}, breaks: wireBreaks{ended: d.ended}}
	if resource.Kind != "" && !c.plan.status {
		d.apiVersion, d.kind, d.strict = resource.GroupVersion().String(), resource.Kind, true
	}
	return d
}

// remember prepares the decoder for many objects, whose strings repeat.
func (d *decoder[T]) remember(m media) {
	if m == mediaProtobuf && d.plan.wire != nil {
		d.wire.recent = &recent{}
	}
}

// jsonItem decodes one of many objects, with the outline o in b, or returns the object that the caller already holds.
// If ok is false and err is nil, the object was reported and is skipped.
func (d *decoder[T]) jsonItem(b []byte, o *outline, event watch.EventType) (obj T, version string, ok bool, err error) {
	h := o.head(b)
	if d.options.Known != nil {
		if obj, version, ok = d.reuse(identify(b, o, h), event); ok {
			return obj, version, true, nil
		}
	}
	if err = d.check(o.stringAt(b, h.apiVersion), o.stringAt(b, h.kind)); err == nil {
		obj, err = d.fromJSON(b, o, d.options.DropManagedFields)
	}
	if err != nil {
		return obj, "", false, d.report(identify(b, o, h), event, err)
	}
	if version = versionOf(obj); version == "" && event != "" {
		version = string(identify(b, o, h).version)
	}
	return obj, version, true, nil
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
func (d *decoder[T]) reuse(id identity, event watch.EventType) (obj T, version string, ok bool) {
	if d.options.Known == nil || event == watch.Deleted || !id.certain || len(id.name) == 0 || len(id.uid) == 0 || len(id.version) == 0 {
		return obj, "", false
	}
	known, ok := d.options.Known(id.namespace, id.name)
	if !ok {
		return obj, "", false
	}
	o, ok := any(known).(api.Object)
	if !ok || string(o.GetUID()) != string(id.uid) || o.GetResourceVersion() != string(id.version) {
		return obj, "", false
	}
	return known, o.GetResourceVersion(), true
}

// check compares the apiVersion and kind of an object with those that were requested. Metadata may have a kind of its
// own.
func (d *decoder[T]) check(apiVersion, kind []byte) error {
	switch {
	case !d.strict || len(kind) == 0:
		return nil
	case string(kind) == d.kind && (len(apiVersion) == 0 || string(apiVersion) == d.apiVersion):
		return nil
	case d.plan.metadataOnly && string(kind) == "PartialObjectMetadata" && bytes.HasPrefix(apiVersion, []byte(metaGroup)):
		return nil
	default:
		return d.unexpected(string(apiVersion), string(kind))
	}
}

// metaGroup is the prefix of the apiVersion of Table and PartialObjectMetadata.
const metaGroup = "meta.k8s.io/"

func (d *decoder[T]) unexpected(apiVersion, kind string) error {
	return &KindError{Resource: d.resource, APIVersion: quote.Short(apiVersion, maxQuoted), Kind: quote.Short(kind, maxQuoted)}
}

// report passes an object that cannot be decoded to OnUndecodable. Its result decides whether to continue.
func (d *decoder[T]) report(id identity, event watch.EventType, err error) error {
	err = d.failed(id, event, err)
	if u, ok := err.(*api.UndecodableError); ok && d.options.OnUndecodable != nil {
		return d.options.OnUndecodable(u)
	}
	return err
}

// failed returns the error of an object that cannot be decoded, or the error of a context that has ended.
func (d *decoder[T]) failed(id identity, event watch.EventType, err error) error {
	if err := d.ended(); err != nil {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New(err.Error()) // the object ends too early, but the answer does not
	}
	if len(id.name) == 0 {
		return malformed(d.window.off, "%w: %w", errNameless, err)
	}
	return &api.UndecodableError{
		Resource: d.resource, Key: id.key(), UID: types.UID(kept(id.uid)), ResourceVersion: kept(id.version), Type: event, Err: err,
	}
}

var (
	errNameless    = errors.New("an object that cannot be decoded and has no name")
	errNotAnObject = errors.New("not a JSON object")
)

// fromJSON decodes one object, without its managedFields if drop is set, and sets the members that it omits.
func (d *decoder[T]) fromJSON(b []byte, o *outline, drop bool) (obj T, err error) {
	c := o.at(b)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return obj, errNotAnObject // otherwise null would decode into any type
	}
	bare := drop && d.plan.leavesOut()
	if drop && !bare {
		c = withoutManagedFields(c)
	}
	d.json.cursor = c
	d.json.breaks.begin()
	if obj, err = d.plan.fromJSON(&d.json, bare); err == nil {
		d.plan.complete(obj, d.apiVersion, d.kind, d.strict)
	}
	return obj, err
}

// jsonObject reads the only object of an answer.
func (d *decoder[T]) jsonObject() (obj T, err error) {
	s := newScanner(d.ended, d.window)
	s.held = true
	i, err := s.next(0)
	if err != nil {
		return obj, err
	}
	if s.b[i] != '{' {
		return obj, s.invalid(i, "an object")
	}
	s.drop(i)
	var o outline
	n, err := s.value(0, &o)
	if err != nil {
		return obj, err
	}
	if obj, err = d.jsonSingle(s.b[:n], &o); err == nil {
		err = s.end(n)
	}
	return zeroUnless(obj, err)
}

func (d *decoder[T]) jsonSingle(b []byte, o *outline) (obj T, err error) {
	h := o.head(b)
	apiVersion, kind := o.stringAt(b, h.apiVersion), o.stringAt(b, h.kind)
	if !d.plan.status && isStatusKind(apiVersion, kind) {
		return obj, d.statusError(jsonStatus(o.at(b)), string(apiVersion))
	}
	if err := d.check(apiVersion, kind); err != nil {
		return obj, err
	}
	if obj, err = d.fromJSON(b, o, false); err != nil {
		err = d.failed(identify(b, o, h), "", err)
	}
	return obj, err
}

// statusError returns the error of a Status that was sent instead of the requested object.
func (d *decoder[T]) statusError(status *metav1.Status, apiVersion string) error {
	if status.Status == metav1.StatusSuccess {
		return d.unexpected(apiVersion, "Status")
	}
	limitStatus(status)
	return &apierrors.StatusError{ErrStatus: *status}
}

// zeroUnless hides a partly decoded object from the caller.
func zeroUnless[T any](obj T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return obj, nil
}
