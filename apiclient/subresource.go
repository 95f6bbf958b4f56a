package apiclient

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Endpoint is a subresource of one object: what it is sent is an In, what it answers an Out. Make one with Subresource.
// It is safe for concurrent use. It corresponds to the EvictV1, GetScale and CreateToken of client-go's typed clients.
type Endpoint[In, Out any] struct {
	endpoint
	key         api.Key
	subresource string
	codec       *codec.Codec[Out]
}

// Subresource returns a client of a subresource of one object; the caller brings the types, both pointers to structs:
//
//	apiclient.Subresource[*policyv1.Eviction, *metav1.Status](c, pods, key, "eviction")
//	apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](c, deployments, key, "scale")
//	apiclient.Subresource[*authenticationv1.TokenRequest, *authenticationv1.TokenRequest](c, serviceAccounts, key, "token")
//	apiclient.Subresource[*corev1.Binding, *metav1.Status](c, pods, key, "binding")
//
// What is sent carries the apiVersion and kind that the caller set in it. The status of an object, which is of the
// object's own type, can be had from TypedClient.UpdateStatus and the Subresource of PatchOptions and ApplyOptions too;
// what is no object, such as a log, is for Client.Stream. It panics as NewPartial does.
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

// Patch changes a part of the subresource, and returns what became of that: replicas of a scale, say.
func (e *Endpoint[In, Out]) Patch(ctx context.Context, patch Patch, o metav1.PatchOptions) (Out, error) {
	r, err := e.objectRequest("patch", http.MethodPatch, e.key, e.subresource, &o)
	if err == nil && patch.Type == types.ApplyPatchType && o.FieldManager == "" {
		err = r.fail(errNoFieldManager)
	}
	if err != nil {
		var none Out
		return none, err
	}
	r.body, r.contentType = patch.Data, string(patch.Type)
	return e.fetch(ctx, r)
}

// Apply is a server-side apply to the subresource (see PartialClient.Apply). intent carries the apiVersion and kind of
// the subresource; its name and namespace may be left out.
func (e *Endpoint[In, Out]) Apply(ctx context.Context, intent any, o metav1.ApplyOptions) (Out, error) {
	var none Out
	options := o.ToPatchOptions()
	r, err := e.objectRequest("apply", http.MethodPatch, e.key, e.subresource, &options)
	if err == nil && o.FieldManager == "" {
		err = r.fail(errNoFieldManager)
	}
	if err != nil {
		return none, err
	}
	patch, err := endpoint{}.applyPatch(e.key, intent) // of no resource: what a subresource is, only the intent can say
	if err != nil {
		return none, r.fail(err)
	}
	r.body, r.contentType = patch.Data, string(patch.Type)
	return e.fetch(ctx, r)
}

func (e *Endpoint[In, Out]) fetch(ctx context.Context, r request) (Out, error) {
	r.accept = e.codec.Accept(codec.AcceptOptions{JSON: e.client.disableProtobuf})
	return fetch(ctx, e.client, e.codec, api.Resource{}, r)
}

func (e *Endpoint[In, Out]) send(ctx context.Context, verb, method string, in *In, options any) (Out, error) {
	var none Out
	r, err := e.objectRequest(verb, method, e.key, e.subresource, options)
	if err != nil {
		return none, err
	}
	if in != nil {
		if r.body, err = codec.Marshal(*in, codec.MediaTypeJSON, api.Resource{}); err != nil {
			return none, r.fail(err)
		}
		r.contentType = codec.MediaTypeJSON
	}
	return e.fetch(ctx, r)
}
