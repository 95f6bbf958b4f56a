package codec

import (
	"bytes"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// decoder is what the objects of one answer have in common.
type decoder[T any] struct {
	plan     *plan[T]
	resource api.Resource
	options  api.Options[T]

	// apiVersion and kind are what the objects are filled up with: the resource's, or what a list says of its items.
	apiVersion, kind string
	// expected is whether apiVersion and kind come from the resource, so that another kind is an error.
	expected bool
}

func (c *Codec[T]) decoder(resource api.Resource, o api.Options[T]) decoder[T] {
	d := decoder[T]{plan: &c.plan, resource: resource, options: o}
	if resource.Kind != "" {
		d.apiVersion, d.kind, d.expected = resource.GroupVersion().String(), resource.Kind, true
	}
	return d
}

// jsonItem decodes one object of many, or hands out the one that the caller holds already. ok is false without an error
// for an object that was reported and is to be left out.
func (d *decoder[T]) jsonItem(b []byte, o *outline, event watch.EventType) (obj T, version string, ok bool, err error) {
	if d.options.Known != nil && event != watch.Deleted {
		if obj, version, ok = d.reuse(identify(b, o)); ok {
			return obj, version, true, nil
		}
	}
	if err = d.check(textOf(o.apiVersion.in(b)), textOf(o.kind.in(b))); err == nil {
		if d.options.DropManagedFields {
			b = withoutManagedFields(b, o)
		}
		obj, err = d.plan.fromJSON(b)
	}
	if err != nil {
		return obj, "", false, d.report(identify(b, o), event, err)
	}
	if d.options.DropManagedFields && o.repeated {
		clearManagedFields(obj)
	}
	d.plan.complete(obj, d.apiVersion, d.kind)
	return obj, d.version(obj, event, func() identity { return identify(b, o) }), true, nil
}

// version is the one that an event carries. T need not keep it, but a watch goes on from it.
func (d *decoder[T]) version(obj T, event watch.EventType, peek func() identity) string {
	if event == "" {
		return ""
	}
	if o, ok := any(obj).(api.Object); ok && o.GetResourceVersion() != "" {
		return o.GetResourceVersion()
	}
	return string(peek().version)
}

// reuse returns the object that the caller holds already, and its version, if it is the very same.
func (d *decoder[T]) reuse(id identity) (obj T, version string, ok bool) {
	if !id.certain || len(id.name) == 0 || len(id.uid) == 0 || len(id.version) == 0 {
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
	case !d.expected || len(kind) == 0:
		return nil
	case string(kind) == d.kind && (len(apiVersion) == 0 || string(apiVersion) == d.apiVersion):
		return nil
	case string(kind) == "PartialObjectMetadata" && bytes.HasPrefix(apiVersion, []byte("meta.k8s.io/")):
		return nil
	default:
		return d.unexpected(string(apiVersion), string(kind))
	}
}

func (d *decoder[T]) unexpected(apiVersion, kind string) error {
	return &KindError{Resource: d.resource, APIVersion: apiVersion, Kind: kind}
}

// report hands an object that cannot be decoded to whoever asked to be told, and says whether to go on.
func (d *decoder[T]) report(id identity, event watch.EventType, err error) error {
	if len(id.name) == 0 {
		return &MalformedError{Err: errors.Join(errNameless, err)}
	}
	u := id.undecodable(d.resource, err)
	u.Type = event
	if d.options.OnUndecodable == nil {
		return u
	}
	return d.options.OnUndecodable(u)
}

var errNameless = errors.New("an object that cannot be decoded and has no name")

// jsonObject reads the one object of an answer.
func (d *decoder[T]) jsonObject(w *window) (obj T, err error) {
	s := newScanner(w)
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
	if obj, err = d.jsonSingle(s.b[:n], &o); err != nil {
		return obj, err
	}
	return obj, s.end(n)
}

func (d *decoder[T]) jsonSingle(b []byte, o *outline) (obj T, err error) {
	apiVersion, kind := textOf(o.apiVersion.in(b)), textOf(o.kind.in(b))
	if _, isStatus := any(obj).(*metav1.Status); !isStatus && isStatusKind(apiVersion, kind) {
		status := jsonStatus(b)
		if status.Status != metav1.StatusSuccess {
			return obj, &apierrors.StatusError{ErrStatus: *status}
		}
		return obj, d.unexpected(string(apiVersion), string(kind))
	}
	if err := d.check(apiVersion, kind); err != nil {
		return obj, err
	}
	if obj, err = d.plan.fromJSON(b); err != nil {
		var none T
		return none, d.failed(identify(b, o), err)
	}
	d.plan.complete(obj, d.apiVersion, d.kind)
	return obj, nil
}

// failed is the error of one object that was asked for alone.
func (d *decoder[T]) failed(id identity, err error) error {
	return id.undecodable(d.resource, err)
}
