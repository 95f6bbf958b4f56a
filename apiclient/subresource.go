package apiclient

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Endpoint is a client of a subresource of one object. It sends an In and receives an Out. Make one with Subresource.
// It is safe for concurrent use. It corresponds to EvictV1, GetScale and CreateToken of client-go's typed clients.
type Endpoint[In, Out any] struct {
	endpoint
	key         api.Key
	subresource string
	codec       *codec.Codec[Out]
}

// Subresource returns a client of a subresource of one object. The caller chooses the types, which must be pointers to
// structs:
//
//	apiclient.Subresource[*policyv1.Eviction, *metav1.Status](c, pods, key, "eviction")
//	apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](c, deployments, key, "scale")
//	apiclient.Subresource[*authv1.TokenRequest, *authv1.TokenRequest](c, serviceAccounts, key, "token")
//	apiclient.Subresource[*corev1.Binding, *metav1.Status](c, pods, key, "binding")
//
// The caller sets apiVersion and kind of the values that are sent. For the status, which has the type of the object,
// there are also TypedClient.UpdateStatus and the field Subresource of PatchOptions and ApplyOptions. For a subresource
// that is not an object, such as a log, use Client.Stream. Subresource panics as NewPartial does.
func Subresource[In, Out any](c *Client, r api.Resource, key api.Key, subresource string) *Endpoint[In, Out] {
	e := newEndpoint(c, r, "")
	return &Endpoint[In, Out]{endpoint: e, key: key, subresource: subresource, codec: codecOf[Out](c, r)}
}

// Get reads the subresource.
func (e *Endpoint[In, Out]) Get(ctx context.Context, o metav1.GetOptions) (Out, error) {
	return e.send(ctx, "get", http.MethodGet, nil, &o)
}

// Create posts to the subresource.
func (e *Endpoint[In, Out]) Create(ctx context.Context, in In, o metav1.CreateOptions) (Out, error) {
	return e.send(ctx, "create", http.MethodPost, &in, &o)
}

// Update replaces the subresource.
func (e *Endpoint[In, Out]) Update(ctx context.Context, in In, o metav1.UpdateOptions) (Out, error) {
	return e.send(ctx, "update", http.MethodPut, &in, &o)
}

// Patch changes a part of the subresource and returns the changed subresource, for example the replicas of a scale.
func (e *Endpoint[In, Out]) Patch(ctx context.Context, patch Patch, o metav1.PatchOptions) (Out, error) {
	r, err := e.objectRequest("patch", http.MethodPatch, e.key, e.subresource, &o)
	if err == nil && patch.Type == types.ApplyPatchType && !r.managed() {
		err = r.fail(errNoFieldManager)
	}
	if err != nil {
		var none Out
		return none, err
	}
	r.Body, r.ContentType = patch.Data, string(patch.Type)
	return e.fetch(ctx, r)
}

// Apply is a server-side apply of the subresource (see PartialClient.Apply). intent must have the apiVersion and kind
// of the subresource; its name and namespace may be missing.
func (e *Endpoint[In, Out]) Apply(ctx context.Context, intent any, o metav1.ApplyOptions) (Out, error) {
	var none Out
	options := o.ToPatchOptions()
	r, err := e.objectRequest("apply", http.MethodPatch, e.key, e.subresource, &options)
	if err == nil && !r.managed() {
		err = r.fail(errNoFieldManager)
	}
	if err != nil {
		return none, err
	}
	patch, err := endpoint{}.applyPatch(e.key, intent) // without a resource, because only the intent has the type of the subresource
	if err != nil {
		return none, r.fail(err)
	}
	r.Body, r.ContentType = patch.Data, string(patch.Type)
	return e.fetch(ctx, r)
}

func (e *Endpoint[In, Out]) fetch(ctx context.Context, r request) (Out, error) {
	r.Accept = e.codec.Accept(codec.AcceptOptions{JSON: e.client.disableProtobuf})
	return fetch(ctx, e.client, e.codec, api.Resource{}, r)
}

func (e *Endpoint[In, Out]) send(ctx context.Context, verb, method string, in *In, options any) (Out, error) {
	var none Out
	r, err := e.objectRequest(verb, method, e.key, e.subresource, options)
	if err != nil {
		return none, err
	}
	if in != nil {
		if r.Body, err = codec.Marshal(*in, codec.MediaTypeJSON, api.Resource{}); err != nil {
			return none, r.fail(err)
		}
		r.ContentType = codec.MediaTypeJSON
	}
	return e.fetch(ctx, r)
}
