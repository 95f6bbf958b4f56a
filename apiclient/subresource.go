package apiclient

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
//
// What is sent carries the apiVersion and kind that the caller set in it. It panics as View does.
func Subresource[In, Out any](c *Client, r api.Resource, key api.Key, subresource string) *Endpoint[In, Out] {
	e := newEndpoint(c, r, "")
	return &Endpoint[In, Out]{endpoint: e, key: key, subresource: subresource, codec: codec.For[Out](c.codecOptions())}
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
	r.accept = e.codec.Accept(codec.AcceptOptions{JSON: e.client.disableProtobuf})
	return fetch(ctx, e.client, e.codec, api.Resource{}, r)
}
