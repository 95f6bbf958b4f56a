package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// PartialClient reads objects of a resource as T, which may declare a part of what they hold or nothing but metadata,
// and changes them only in ways that name what they change. It has no Create, Update or UpdateStatus: writing a partial
// T back whole would delete what T does not declare. Make one with NewPartial. It implements api.ListerWatcher[T] and
// is safe for concurrent use.
//
// An error is wrapped once with the operation ("get pods default/web: …"). What the server answered is a
// *apierrors.StatusError beneath, so that apierrors.IsNotFound and the like work; misuse of names and namespaces is
// found before anything is sent.
// It corresponds to metadata.Interface of client-go, for any part of an object.
type PartialClient[T api.Object] struct {
	endpoint
	codec *codec.Codec[T]
}

// NewPartial returns a client of one resource whose objects it reads as T. With a namespace it is confined to that,
// with "" it lists all and takes the namespace of an object from its key. It panics when c is nil, when r lacks its
// version or plural name, and when T is not a pointer to a struct.
func NewPartial[T api.Object](c *Client, r api.Resource, namespace string) *PartialClient[T] {
	e := newEndpoint(c, r, namespace)
	return &PartialClient[T]{endpoint: e, codec: codecOf[T](c, r)}
}

// identity is what makes two clients read the same things.
type identity struct {
	client    *Client
	resource  api.Resource
	namespace string
}

// Identity returns a comparable value: what is equal reads the same objects from the same server on behalf of the same
// user, so that one informer can serve both. Type parameters are not part of it.
func (p *PartialClient[T]) Identity() any {
	return identity{client: p.client, resource: p.resource, namespace: p.namespace}
}

// Resource returns what is read.
func (p *PartialClient[T]) Resource() api.Resource { return p.resource }

// Namespace returns the namespace that the client is confined to, or "".
func (p *PartialClient[T]) Namespace() string { return p.namespace }

// Client returns the client that everything is sent with.
func (p *PartialClient[T]) Client() *Client { return p.client }

// List makes one request and hands each item to each as it arrives; the body is never held whole. With a Limit the
// metadata that it returns has the token of the next page. Nothing is tried again. An error of each is returned as it
// is but for the operation's name before it.
// It corresponds to the List of a typed client of client-go, which returns when the last byte is decoded.
func (p *PartialClient[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	o.Watch, o.SendInitialEvents, o.AllowWatchBookmarks = false, nil, false
	r, err := p.collectionRequest("list", http.MethodGet, &o.ListOptions)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	r.once = true
	r.accept = p.codec.Accept(codec.AcceptOptions{
		List: true, JSON: p.client.disableProtobuf, DropManagedFields: o.DropManagedFields,
	})
	body, mediaType, err := p.client.read(ctx, r)
	if err != nil {
		return metav1.ListMeta{}, r.fail(err)
	}
	defer body.Close()
	meta, err := p.codec.DecodeList(ctx, body, mediaType, p.resource, o, each)
	return meta, r.fail(err)
}

// Get reads one object.
func (p *PartialClient[T]) Get(ctx context.Context, key api.Key, o metav1.GetOptions) (T, error) {
	r, err := p.objectRequest("get", http.MethodGet, key, "", &o)
	if err != nil {
		var none T
		return none, err
	}
	return p.one(ctx, r)
}

// Delete deletes one object, or marks it for deletion where finalizers hold it. The options carry preconditions (of UID
// and version) and the policy for dependents.
func (p *PartialClient[T]) Delete(ctx context.Context, key api.Key, o metav1.DeleteOptions) error {
	r, err := p.objectRequest("delete", http.MethodDelete, key, "", nil)
	if err != nil {
		return err
	}
	return p.delete(ctx, r, o)
}

// DeleteCollection deletes all objects that which selects, within the client's namespace. An empty selection is all of
// them.
func (p *PartialClient[T]) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, which metav1.ListOptions) error {
	r, err := p.collectionRequest("delete all", http.MethodDelete, &which)
	if err != nil {
		return err
	}
	return p.delete(ctx, r, o)
}

func (p *PartialClient[T]) delete(ctx context.Context, r request, o metav1.DeleteOptions) error {
	if err := setDeleteOptions(&r, o); err != nil {
		return r.fail(err)
	}
	return p.client.discard(ctx, r)
}

// Patch changes a part of one object and returns what became of it.
func (p *PartialClient[T]) Patch(ctx context.Context, key api.Key, patch Patch, o PatchOptions) (T, error) {
	r, err := p.objectRequest("patch", http.MethodPatch, key, o.Subresource, &o.PatchOptions)
	if err != nil {
		var none T
		return none, err
	}
	if patch.Type == types.ApplyPatchType && o.FieldManager == "" {
		var none T
		return none, r.fail(errNoFieldManager)
	}
	r.body, r.contentType = patch.Data, string(patch.Type)
	return p.one(ctx, r)
}

// Apply is a server-side apply: it makes the fields that intent has be as intent says, owns them from then on, and
// removes those that it owned and that intent no longer has. intent is anything that encoding/json writes as an object;
// its apiVersion, kind, name and namespace may be left out. It returns what became of the object.
//
// A struct without omitempty states each field that it declares, zeroes included: better a type, or a map, with only
// what is meant.
func (p *PartialClient[T]) Apply(ctx context.Context, key api.Key, intent any, o ApplyOptions) (T, error) {
	options := o.ToPatchOptions()
	r, err := p.objectRequest("apply", http.MethodPatch, key, o.Subresource, &options)
	if err == nil && o.FieldManager == "" {
		err = r.fail(errNoFieldManager)
	}
	if err == nil {
		key, err = p.locate(key)
	}
	var patch Patch
	if err == nil {
		patch, err = p.applyPatch(key, intent)
		err = r.fail(err)
	}
	if err != nil {
		var none T
		return none, err
	}
	r.body, r.contentType = patch.Data, string(patch.Type)
	return p.one(ctx, r)
}

var errNoFieldManager = errors.New("apiclient: a server-side apply needs a field manager")

// one makes a request that is answered with one object.
func (p *PartialClient[T]) one(ctx context.Context, r request) (T, error) {
	r.accept = p.codec.Accept(codec.AcceptOptions{JSON: p.client.disableProtobuf})
	return fetch(ctx, p.client, p.codec, p.resource, r)
}

// fetch makes a request that is answered with one object of a kind; an empty kind allows any.
func fetch[T any](ctx context.Context, c *Client, from *codec.Codec[T], kind api.Resource, r request) (T, error) {
	var none T
	body, mediaType, err := c.read(ctx, r)
	if err != nil {
		return none, r.fail(err)
	}
	defer body.Close()
	object, err := from.DecodeObject(ctx, body, mediaType, kind)
	if err != nil {
		return none, r.fail(fmt.Errorf("read the answer: %w", err))
	}
	return object, nil
}
