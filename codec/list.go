package codec

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// DecodeList decodes the only list in r, and reads r to its end. It passes each item to each as soon as the item's
// last byte has arrived. At most one item is in memory, wherever the list's metadata is in the answer. mediaType is
// the Content-Type of the answer. DecodeList blocks as r and each do, and returns the first error of each unchanged.
// If ctx ends while a large item is being decoded, the error is that of ctx.
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
