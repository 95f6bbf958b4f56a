package codec

import (
	"bytes"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// decoder is what the objects of one answer have in common. It belongs to the goroutine that reads the answer.
type decoder[T any] struct {
	plan     *plan[T]
	window   *window
	resource api.Resource
	options  api.Options[T]

	// apiVersion and kind are what the objects are filled up with: the resource's, or what a list says of its items.
	apiVersion, kind string
	// strict says that they are the resource's, so that an object of another kind is none of it.
	strict bool

	json jsonReader
	wire wireReader
}

func (c *Codec[T]) decoder(w *window, resource api.Resource, o api.Options[T]) decoder[T] {
	d := decoder[T]{plan: &c.plan, window: w, resource: resource, options: o}
	d.json = jsonReader{strings: c.plan.strings, scratch: &scratch{}}
	d.wire = wireReader{strings: c.plan.strings, scratch: &scratch{}}
	if resource.Kind != "" && !c.plan.status {
		d.apiVersion, d.kind, d.strict = resource.GroupVersion().String(), resource.Kind, true
	}
	return d
}

// remember prepares for many objects of one answer, whose strings repeat.
func (d *decoder[T]) remember(m media) {
	if m == mediaProtobuf && d.plan.wire != nil {
		d.wire.recent = &recent{}
	}
}

// jsonItem decodes one object of many, which o outlines in b, or hands out the one that the caller holds already. ok is
// false without an error for an object that was reported and is to be left out.
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

// versionOf is the version that obj keeps. T need not keep any: a watch then goes on from what is peeked.
func versionOf(obj any) string {
	if o, ok := obj.(api.Object); ok {
		return o.GetResourceVersion()
	}
	return ""
}

// reuse returns the object that the caller holds already, and its version, if it is the very same. The last state of a
// deleted object is the server's to tell.
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

// check compares what an object says it is with what was asked for. Metadata may come in a kind of its own.
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

// metaGroup is what the apiVersion of Table and PartialObjectMetadata begins with.
const metaGroup = "meta.k8s.io/"

func (d *decoder[T]) unexpected(apiVersion, kind string) error {
	return &KindError{Resource: d.resource, APIVersion: apiVersion, Kind: kind}
}

// report hands an object that cannot be decoded to whoever asked to be told, and says whether to go on.
func (d *decoder[T]) report(id identity, event watch.EventType, err error) error {
	err = d.failed(id, event, err)
	if u, ok := err.(*api.UndecodableError); ok && d.options.OnUndecodable != nil {
		return d.options.OnUndecodable(u)
	}
	return err
}

// failed is the error of an object that cannot be decoded.
func (d *decoder[T]) failed(id identity, event watch.EventType, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New(err.Error()) // the object ends too early, and the answer does not
	}
	if len(id.name) == 0 {
		return malformed(d.window.off, "%w: %w", errNameless, err)
	}
	return &api.UndecodableError{
		Resource: d.resource, Key: id.key(), UID: types.UID(id.uid), ResourceVersion: string(id.version), Type: event, Err: err,
	}
}

var (
	errNameless    = errors.New("an object that cannot be decoded and has no name")
	errNotAnObject = errors.New("not a JSON object")
)

// fromJSON decodes one object, without its managedFields if drop is set, and fills in what it leaves out.
func (d *decoder[T]) fromJSON(b []byte, o *outline, drop bool) (obj T, err error) {
	c := o.at(b)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return obj, errNotAnObject // null would decode into anything
	}
	bare := drop && d.plan.leavesOut()
	if drop && !bare {
		c = withoutManagedFields(c)
	}
	d.json.cursor = c
	if obj, err = d.plan.fromJSON(&d.json, bare); err == nil {
		d.plan.complete(obj, d.apiVersion, d.kind, d.strict)
	}
	return obj, err
}

// jsonObject reads the one object of an answer.
func (d *decoder[T]) jsonObject() (obj T, err error) {
	s := newScanner(d.window)
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

// statusError is the error of a Status in the place of something else.
func (d *decoder[T]) statusError(status *metav1.Status, apiVersion string) error {
	if status.Status == metav1.StatusSuccess {
		return d.unexpected(apiVersion, "Status")
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// zeroUnless keeps a half-decoded object from its caller.
func zeroUnless[T any](obj T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return obj, nil
}
