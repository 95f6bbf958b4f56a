package codec

import (
	"io"

	"github.com/leatproject/leat/api"
)

// DefaultMaxObjectBytes bounds one object on the wire unless Options says otherwise. etcd refuses values above 1.5 MiB
// and kube-apiserver bodies above 3 MiB, so 16 MiB is several times what an honest server can send, and small enough
// that a hostile one cannot exhaust an agent.
const DefaultMaxObjectBytes = 16 << 20

// Options is what a Codec can be told. The zero value is useful.
type Options struct {
	// MaxObjectBytes bounds the bytes of one object, of one watch frame and of one error body; more is a TooLargeError.
	// What a stream holds beside the objects handed out is at most that, and for JSON twice as much again to note where
	// the tokens of one object stand: one that has more than 65536 tokens, and more than one to four bytes of
	// MaxObjectBytes, is too large as well. 0 means DefaultMaxObjectBytes; more than 2 GiB is as much as that.
	MaxObjectBytes int
}

// Codec turns bytes into objects of one Go type. T is a pointer to a struct: what the struct declares is kept, what it
// does not is skipped.
// It corresponds to a runtime.Decoder and its stream.Serializer of client-go, for one type and without a scheme.
type Codec[T any] struct {
	plan  plan[T]
	limit int
}

// For compiles the decode plan of T once; keep the Codec and use it for every answer. It panics unless T is a pointer
// to a struct, such as *corev1.Pod, *unstructured.Unstructured or a struct of your own.
func For[T any](o Options) *Codec[T] {
	limit := o.MaxObjectBytes
	if limit <= 0 {
		limit = DefaultMaxObjectBytes
	}
	return &Codec[T]{plan: compile[T](), limit: min(limit, maxNoted)}
}

// Protobuf tells whether T can be read from Kubernetes' protobuf: whether each field that it declares has its number in
// a tag like those of k8s.io/api, `protobuf:"bytes,1,opt,name=metadata"`, and so has each field of the structs in them;
// or whether T has an Unmarshal method of its own that reads the whole object. apiVersion, kind and what JSON leaves out
// need no number. Any other struct is read from JSON.
func (c *Codec[T]) Protobuf() bool { return c.plan.protobuf }

// MetadataOnly tells whether T declares nothing beside apiVersion, kind and metadata, so that a server can be asked for
// PartialObjectMetadata in its stead.
func (c *Codec[T]) MetadataOnly() bool { return c.plan.metadataOnly }

// DecodeObject reads the one object that r holds to its end, and blocks as r does. mediaType is the answer's
// Content-Type. r is read to its end, and anything but white space after the object is an error. A Status that reports
// a failure comes back as a *apierrors.StatusError, any other kind than resource's as a *KindError; an empty
// resource.Kind allows every kind. Where T declares apiVersion and kind they are filled in if the answer left them out.
func (c *Codec[T]) DecodeObject(r io.Reader, mediaType string, resource api.Resource) (T, error) {
	var none T
	m, err := c.media(mediaType)
	if err != nil {
		return none, err
	}
	d := c.decoder(&window{r: r, limit: c.limit}, resource, api.Options[T]{})
	if m == mediaProtobuf {
		return d.protobufObject()
	}
	return d.jsonObject()
}
