package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

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
