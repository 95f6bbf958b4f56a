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

// Deletion is what a server said became of an object that was to be deleted.
type Deletion[T api.Object] struct {
	// UID is the object's; empty if the server did not say.
	UID types.UID
	// Object is what the server answered with: the object as it waits, or its last state. Many servers answer with a
	// Status alone, and then it is zero.
	Object T
	// Waits says that the object is still there, marked, until its finalizers are removed or its grace period is over.
	Waits bool
}

// DeleteObject is Delete for those who want to know what it did. An answer that says nothing, or cannot be read, is no
// error, since the deletion has been accepted: it is a Deletion of which less is known.
// It corresponds to the Delete of a dynamic client of client-go, with its answer.
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
	answer, _ := io.ReadAll(io.LimitReader(body, int64(p.client.maxObjectBytes))) // half of one cannot be read
	return p.deletion(ctx, answer, mediaType), nil
}

// deletion reads the answer to a deletion: the object, or a Status that may name its UID.
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
	r.body, r.contentType, r.accept = body, codec.MediaTypeJSON, codec.MediaTypeJSON
	return err
}
