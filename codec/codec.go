package codec

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/internal/quote"
)

// DefaultMaxObjectBytes is the default of Options.MaxObjectBytes. etcd rejects values above 1.5 MiB, and kube-apiserver
// rejects bodies above 3 MiB. So 16 MiB is several times the size of any valid object, and small enough that a hostile
// server cannot exhaust the memory of an agent.
const DefaultMaxObjectBytes = 16 << 20

// Options configures a Codec. The zero value is useful.
type Options struct {
	// MaxObjectBytes limits the bytes of one object, of one watch frame and of one error body; more is a TooLargeError.
	// Besides the objects that it returned, a stream holds at most this many bytes. For JSON, it needs up to twice as
	// much again for the positions of one object's tokens. An object is also too large if it has more than 65536 tokens
	// and fewer than four bytes of MaxObjectBytes for each. 0 means DefaultMaxObjectBytes. The largest value is 2 GiB.
	MaxObjectBytes int
	// Tables are those of all codecs that have this value. Nil means that the codec has its own.
	Tables *Tables
}

// Tables know the repeated strings in the objects of several codecs, at most 16384, and their equal parts, at most
// 1,048,576. They are safe for concurrent use.
type Tables struct {
	strings *plan.Interner
	parts   func() *plan.Parts // it may return nil
}

// NewTables returns empty Tables. They take 9 KB at first. Full ones take 460 KB and the strings, and 48 MB for equal
// parts.
func NewTables() *Tables { return newTables(plan.MaxShared, plan.MaxSharedParts) }

func newTables(strings, parts int) *Tables {
	return &Tables{plan.NewInterner(strings), sync.OnceValue(func() *plan.Parts { return plan.NewParts(parts) })}
}

// Codec decodes bytes into objects of one Go type. T is a pointer to a struct. The codec keeps the fields that the
// struct declares and skips all others. It corresponds to a runtime.Decoder and its stream.Serializer of client-go, for
// one type and without a scheme.
type Codec[T any] struct{ d decoder }

// decoder is a Codec without its type parameter. Its code exists once in a program, for all types.
type decoder struct {
	target  target
	readers []reader // one for each format; nil if the target cannot be decoded from it
	limit   int
}

// New compiles the decode plan of T. Keep the Codec and use it for every answer. New panics unless T is a pointer to a
// struct, such as *corev1.Pod, *unstructured.Unstructured or a pointer to the user's own struct.
func New[T any](o Options) *Codec[T] {
	c := &Codec[T]{}
	c.d.compile(reflect.TypeFor[T](), o)
	return c
}

// NewOf is New for a type that is known only at run time. T is an interface that object implements; object is a pointer
// to a struct. NewOf panics if that does not hold.
func NewOf[T any](object reflect.Type, o Options) *Codec[T] {
	mustImplement(object, reflect.TypeFor[T]())
	c := &Codec[T]{}
	c.d.compile(object, o)
	return c
}

func mustImplement(object, t reflect.Type) {
	if !object.AssignableTo(t) {
		panic(fmt.Sprintf("codec: %s does not implement %s", object, t))
	}
}

func (d *decoder) compile(t reflect.Type, o Options) {
	d.limit = o.MaxObjectBytes
	if d.limit <= 0 {
		d.limit = DefaultMaxObjectBytes
	}
	d.limit = min(d.limit, scan.MaxNoted)
	d.target.compile(t, o.Tables)
	for _, f := range formats {
		d.readers = append(d.readers, f.compile(&d.target))
	}
}

// reader returns the reader of answers with a Content-Type.
func (d *decoder) reader(contentType string) (reader, error) {
	if at := formatOf(contentType); at >= 0 && d.readers[at] != nil {
		return d.readers[at], nil
	}
	return nil, &MediaTypeError{MediaType: quote.Short(contentType, maxQuoted)}
}

// DecodeObject decodes the only object in r, and reads r to its end. It blocks as r does. If ctx ends while a large
// object is being decoded, DecodeObject returns the error of ctx within milliseconds. mediaType is the Content-Type of
// the answer. Anything but white space after the object is an error. A Status that reports a failure is returned as a
// *apierrors.StatusError. A kind other than resource.Kind is a *KindError; an empty resource.Kind allows every kind. If
// T declares apiVersion and kind and the answer omits them, DecodeObject sets them.
func (c *Codec[T]) DecodeObject(ctx context.Context, r io.Reader, mediaType string, resource api.Resource) (T, error) {
	var none T
	reader, err := c.d.reader(mediaType)
	if err != nil {
		return none, err
	}
	obj, err := reader.object(c.d.answer(ctx, r, &resource))
	if err != nil {
		return none, public(err)
	}
	return obj.(T), nil
}

// DecodeList decodes the only list in r, and reads r to its end. It passes each item to each as soon as the item's
// last byte has arrived. At most one item is in memory, wherever the list's metadata is in the answer. mediaType is
// the Content-Type of the answer. DecodeList blocks as r and each do, and returns the first error of each unchanged.
// If ctx ends while a large item is being decoded, DecodeList returns the error of ctx.
//
// A list must have the apiVersion of resource and its kind with "List" behind it. Its kind may be missing, and it may
// be List of v1. PartialObjectMetadataList is another allowed kind if T has only metadata. In a group with a dot, in
// which custom resources exist, a list may have any kind if its items name resource.Kind. If resource.Kind is empty,
// all kinds are allowed.
//
// An item that cannot be decoded into T is passed to o.OnUndecodable; if that returns nil, the list continues. If the
// answer is a Status, the error is a *apierrors.StatusError; if it is a Table or anything else, a *KindError. After any
// error, each has received only a part of the list. DecodeList corresponds to decoding a PodList and meta.EachListItem
// of client-go, but never holds a PodList.
func (c *Codec[T]) DecodeList(
	ctx context.Context, r io.Reader, mediaType string, resource api.Resource, o api.Options[T], each func(T) error,
) (metav1.ListMeta, error) {
	reader, err := c.d.reader(mediaType)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	a := answerWith(&c.d, ctx, r, &resource, &o)
	a.each = func(obj any) error { return each(obj.(T)) }
	meta, err := reader.list(a)
	return meta, public(err)
}

// answerWith returns an answer with the caller's options.
func answerWith[T any](d *decoder, ctx context.Context, r io.Reader, resource *api.Resource, o *api.Options[T]) *answer {
	a := d.answer(ctx, r, resource)
	a.drop, a.share, a.keep, a.onUndecodable = o.DropManagedFields, o.ShareParts, o.Keep, o.OnUndecodable
	if known := o.Known; known != nil {
		a.known = func(namespace, name []byte) (any, bool) { return known(namespace, name) }
	}
	return a
}
