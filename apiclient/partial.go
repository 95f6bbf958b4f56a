package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// PartialClient reads objects of a resource as T. T may declare some of their fields, or only metadata. The client
// changes objects only by operations that name the fields. It has no Create, Update or UpdateStatus, because a write of
// a partial T would delete the fields that T does not declare. Make one with NewPartial. It implements
// api.ListerWatcher[T] and is safe for concurrent use.
//
// Errors are wrapped once with the operation ("get pods default/web: …"). An error of the server is a
// *apierrors.StatusError below that, so apierrors.IsNotFound and similar functions work. Invalid names and namespaces
// are errors before a request is sent. It corresponds to metadata.Interface of client-go, for any part of an object.
type PartialClient[T api.Object] struct {
	endpoint
	codec *codec.Codec[T]
}

// NewPartial returns a client of one resource whose objects are decoded as T. With a namespace, the client accesses
// only that namespace. With "", it lists all namespaces and takes the namespace of an object from its key. It panics if
// c is nil, if r lacks its version or plural name, or if T is not a pointer to a struct.
func NewPartial[T api.Object](c *Client, r api.Resource, namespace string) *PartialClient[T] {
	e := newEndpoint(c, r, namespace)
	return &PartialClient[T]{endpoint: e, codec: codecOf[T](c, r)}
}

// Codec returns the codec of the client, with its tables of strings and parts. Its Accept shows which formats the
// client requests.
func (p *PartialClient[T]) Codec() *codec.Codec[T] { return p.codec }

// identity has everything that decides what a client reads.
type identity struct {
	client    *Client
	resource  api.Resource
	namespace string
}

// Identity returns a comparable value. Clients with equal values read the same objects from the same server as the same
// user, so that one informer can serve both. The type T is not part of it.
func (p *PartialClient[T]) Identity() any {
	return identity{client: p.client, resource: p.resource, namespace: p.namespace}
}

// Collection implements api.ListerWatcher.
func (p *PartialClient[T]) Collection() api.Collection {
	return api.Collection{Resource: p.resource, Namespace: p.namespace}
}

// Resource returns the resource of the client.
func (p *PartialClient[T]) Resource() api.Resource { return p.resource }

// Namespace returns the namespace of the client, or "" for all.
func (p *PartialClient[T]) Namespace() string { return p.namespace }

// Client returns the Client that sends the requests.
func (p *PartialClient[T]) Client() *Client { return p.client }

// List sends one request and calls each for each item when it arrives. It never holds the whole body. With a Limit, the
// metadata in the result have the token of the next page. It never repeats a request. An error of each is returned with
// the name of the operation. It corresponds to the List of a typed client of client-go, which returns after the last
// byte is decoded.
func (p *PartialClient[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	o.Watch, o.SendInitialEvents, o.AllowWatchBookmarks = false, nil, false
	r, err := p.collectionRequest("list", http.MethodGet, &o.ListOptions)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	r.Once = true
	r.Accept = p.codec.Accept(codec.AcceptOptions{
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

// Delete deletes one object, or marks it for deletion if it has finalizers. The options have preconditions (UID and
// version) and the policy for dependents:
//
//	metav1.DeleteOptions{
//		Preconditions:     &metav1.Preconditions{UID: new(pod.UID)},
//		PropagationPolicy: new(metav1.DeletePropagationForeground),
//	}
func (p *PartialClient[T]) Delete(ctx context.Context, key api.Key, o metav1.DeleteOptions) error {
	r, err := p.objectRequest("delete", http.MethodDelete, key, "", nil)
	if err != nil {
		return err
	}
	return p.delete(ctx, r, o)
}

// DeleteCollection deletes all objects that the options in which select, within the client's namespace. Empty options
// select all objects.
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

// Patch changes a part of one object and returns the object as the server stored it.
func (p *PartialClient[T]) Patch(ctx context.Context, key api.Key, patch Patch, o PatchOptions) (T, error) {
	r, err := p.objectRequest("patch", http.MethodPatch, key, o.Subresource, o.toAPI())
	if err != nil {
		var none T
		return none, err
	}
	if patch.Type == types.ApplyPatchType && !r.managed() {
		var none T
		return none, r.fail(errNoFieldManager)
	}
	r.Body, r.ContentType = patch.Data, string(patch.Type)
	return p.one(ctx, r)
}

// Apply is a server-side apply. It sets the fields of intent and owns them from then on. It removes fields that it
// owned and that intent no longer has. intent is a value that encoding/json writes as a JSON object; its apiVersion,
// kind, name and namespace may be missing. Apply returns the object as the server stored it.
//
// A struct without omitempty sets each field that it declares, also to zero. A type, or a map, with only the intended
// fields is safer.
func (p *PartialClient[T]) Apply(ctx context.Context, key api.Key, intent any, o ApplyOptions) (T, error) {
	options := PatchOptions{FieldManager: o.FieldManager, Force: o.Force, DryRun: o.DryRun}.toAPI()
	options.Force = &o.Force
	r, err := p.objectRequest("apply", http.MethodPatch, key, o.Subresource, options)
	if err == nil && !r.managed() {
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
	r.Body, r.ContentType = patch.Data, string(patch.Type)
	return p.one(ctx, r)
}

var errNoFieldManager = errors.New("apiclient: a server-side apply needs a field manager")

// one sends a request whose answer is one object.
func (p *PartialClient[T]) one(ctx context.Context, r request) (T, error) {
	r.Accept = p.codec.Accept(codec.AcceptOptions{JSON: p.client.disableProtobuf})
	return fetch(ctx, p.client, p.codec, p.resource, r)
}

// fetch sends a request whose answer is one object of a kind. An empty kind allows every kind.
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

// PartialOf is a PartialClient for a type that is known only at run time. T is an interface that the type implements,
// for example an interface that has the methods of all objects of a program.
type PartialOf[T api.Object] struct {
	PartialClient[T]
	object reflect.Type
	packer func() *codec.Packer[T]
}

// NewPartialOf returns a client of one resource whose objects are decoded as object, which is a pointer to a struct. It
// panics as NewPartial does, and if object does not implement T. Use In for further namespaces: clients that In returns
// share the codec, with its tables of strings and parts, and the Packer.
func NewPartialOf[T api.Object](c *Client, r api.Resource, namespace string, object reflect.Type) *PartialOf[T] {
	o := c.codecOptions()
	return &PartialOf[T]{
		PartialClient[T]{endpoint: newEndpoint(c, r, namespace), codec: codec.NewOf[T](object, o)},
		object,
		sync.OnceValue(func() *codec.Packer[T] { return codec.NewPackerOf[T](object, o) }),
	}
}

// In returns a client of the same resource that accesses only a namespace, or all namespaces if it is empty.
func (p *PartialOf[T]) In(namespace string) *PartialOf[T] {
	other := *p
	other.namespace = namespace
	return &other
}

// Packer returns the Packer of the objects, which the first call makes. Package packed uses it.
func (p *PartialOf[T]) Packer() *codec.Packer[T] { return p.packer() }

// Identity tells clients apart that decode into different types; see PartialClient.Identity.
func (p *PartialOf[T]) Identity() any {
	return struct {
		collection any
		object     reflect.Type
	}{p.PartialClient.Identity(), p.object}
}

// MaskedClient is a PartialClient whose objects keep only the fields of a Mask, such as a *corev1.Pod with nothing but
// its node. It has no Create, Update or UpdateStatus, and a TypedClient refuses its objects with a *codec.MaskedError.
// Make one with NewMasked.
type MaskedClient[T api.Object] struct {
	PartialClient[T]
	mask   *codec.Mask
	packer func() *codec.Packer[T]
}

// NewMasked returns a client of one resource that decodes only the fields of a Mask. T is the type of the Mask, or an
// interface that this type implements. NewMasked panics as NewPartial does, and if the Mask is for another type.
func NewMasked[T api.Object](c *Client, r api.Resource, namespace string, mask *codec.Mask) *MaskedClient[T] {
	e, o := newEndpoint(c, r, namespace), c.codecOptions()
	return &MaskedClient[T]{
		PartialClient[T]{endpoint: e, codec: codec.NewMasked[T](mask, o)},
		mask,
		sync.OnceValue(func() *codec.Packer[T] { return codec.NewMaskedPacker[T](mask, o) }),
	}
}

// In returns a client of the same resource that accesses only a namespace, or all namespaces if it is empty.
func (m *MaskedClient[T]) In(namespace string) *MaskedClient[T] {
	other := *m
	other.namespace = namespace
	return &other
}

// Mask returns the Mask.
func (m *MaskedClient[T]) Mask() *codec.Mask { return m.mask }

// Packer returns the Packer of the objects, which the first call makes. Package packed uses it.
func (m *MaskedClient[T]) Packer() *codec.Packer[T] { return m.packer() }

// Identity tells clients apart that have different Masks; see PartialClient.Identity.
func (m *MaskedClient[T]) Identity() any {
	return maskedIdentity{m.PartialClient.Identity(), m.mask.Object(), m.mask.String()}
}

// maskedIdentity has everything that decides what a masked client reads.
type maskedIdentity struct {
	collection any
	object     reflect.Type
	fields     string
}

// Packed does what Packed of a PartialClient does; the result has the Mask too.
func (m *MaskedClient[T]) Packed(from func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	return &maskedBytes{m.PartialClient.Packed(from).(*PartialClient[*codec.Packed]), m.mask}
}

// maskedBytes reads masked objects as bytes.
type maskedBytes struct {
	*PartialClient[*codec.Packed]
	mask *codec.Mask
}

// Mask returns the Mask.
func (m *maskedBytes) Mask() *codec.Mask { return m.mask }

// Identity tells clients apart that have different Masks.
func (m *maskedBytes) Identity() any {
	return maskedIdentity{m.PartialClient.Identity(), m.mask.Object(), m.mask.String()}
}

// Metadata returns a client that lists and watches the same objects and decodes only their metadata. An informer with
// Check uses it.
func (e endpoint) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	return &PartialClient[*metav1.PartialObjectMetadata]{
		endpoint: e, codec: codec.New[*metav1.PartialObjectMetadata](e.client.codecOptions()),
	}
}

// Packed returns a client that lists and watches the same objects with the Codec that from returns, and so keeps them
// as bytes. from gets the options of the client. Package packed uses it. It is a method of a type without parameters,
// so that programs without packed objects do not link it.
func (e endpoint) Packed(from func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	return &PartialClient[*codec.Packed]{endpoint: e, codec: from(e.client.codecOptions())}
}

// Deletion is the server's answer to the deletion of an object.
type Deletion[T api.Object] struct {
	// UID is the object's; empty if the answer does not have it.
	UID types.UID
	// Object is the object in the answer, either marked for deletion or in its last state. Many servers answer only
	// with a Status; Object is then zero.
	Object T
	// Waits reports that the object still exists. It is marked for deletion, until its finalizers are removed or its
	// grace period is over.
	Waits bool
}

// DeleteObject is Delete with the server's answer. An answer that cannot be decoded is not an error, because the server
// has accepted the deletion; the Deletion then has less. It corresponds to the Delete of a dynamic client of client-go,
// with its answer.
func (p *PartialClient[T]) DeleteObject(ctx context.Context, key api.Key, o metav1.DeleteOptions) (Deletion[T], error) {
	r, err := p.objectRequest("delete", http.MethodDelete, key, "", nil)
	if err != nil {
		return Deletion[T]{}, err
	}
	if err := setDeleteOptions(&r, o); err != nil {
		return Deletion[T]{}, r.fail(err)
	}
	body, mediaType, err := p.client.read(ctx, r)
	if err != nil {
		return Deletion[T]{}, r.fail(err)
	}
	defer body.Close()
	answer, _ := io.ReadAll(io.LimitReader(body, int64(p.client.maxObjectBytes))) // a partial answer cannot be decoded
	return p.deletion(ctx, answer, mediaType), nil
}

// deletion decodes the answer to a deletion: the object, or a Status, which may have the object's UID.
func (p *PartialClient[T]) deletion(ctx context.Context, answer []byte, mediaType string) Deletion[T] {
	var said struct {
		Kind     string                  `json:"kind"`
		Metadata metav1.ObjectMeta       `json:"metadata"`
		Details  struct{ UID types.UID } `json:"details"`
	}
	switch err := json.Unmarshal(answer, &said); {
	case err != nil:
		return Deletion[T]{}
	case said.Kind == "Status":
		return Deletion[T]{UID: said.Details.UID}
	}
	object, err := p.codec.DecodeObject(ctx, bytes.NewReader(answer), mediaType, p.resource)
	if err != nil {
		return Deletion[T]{}
	}
	grace := said.Metadata.DeletionGracePeriodSeconds
	waits := said.Metadata.DeletionTimestamp != nil && (len(said.Metadata.Finalizers) > 0 || grace != nil && *grace > 0)
	return Deletion[T]{UID: said.Metadata.UID, Object: object, Waits: waits}
}

func setDeleteOptions(r *request, o metav1.DeleteOptions) error {
	o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(o)
	r.Body, r.ContentType, r.Accept = body, codec.MediaTypeJSON, codec.MediaTypeJSON
	return err
}
