package apiclient

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Metadata returns a client that lists and watches the same objects and decodes only their metadata. An informer with
// Check uses it.
func (e endpoint) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	return &PartialClient[*metav1.PartialObjectMetadata]{
		endpoint: e, codec: codec.New[*metav1.PartialObjectMetadata](e.client.codecOptions()),
	}
}
