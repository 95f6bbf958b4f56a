package codec

import (
	"mime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// format is one encoding of the API of Kubernetes: everything that depends on the Content-Type. It is an interface and
// not a struct of functions because the linker removes the methods of an interface that a program does not call. So an
// agent that only reads does not link marshal.
type format interface {
	// mediaType returns the media type, without parameters.
	mediaType() string
	// isText reports whether people can read the format, so that an error may quote the beginning of a body.
	isText() bool
	// compile returns the reader of answers with objects of type t, or nil if t cannot be decoded from the format.
	compile(t *target) reader
	// status returns the Status in the body of a failed answer, or nil if the body has none.
	status(body []byte) *metav1.Status
	// marshal encodes an object for Marshal. It returns errNotEncodable if the type has no encoding in the format.
	marshal(obj any, resource api.Resource) ([]byte, error)
}

// formats are the formats that leat knows, the most efficient one first.
var formats = [...]format{protobufAt: &protobufFormat{}, jsonAt: &jsonFormat{}}

const (
	protobufAt = iota
	jsonAt
)

// reader reads answers of one format with objects of one Go type. It is immutable.
type reader interface {
	// object reads an answer with one object.
	object(a *answer) (any, error)
	// list reads an answer with a list, and passes its items to a.each.
	list(a *answer) (metav1.ListMeta, error)
	// frames returns a function that reads the next frame of a watch. If ok is false and err is nil, the frame is
	// skipped.
	frames(a *answer) func(to *api.Event[any]) (ok bool, err error)
	// unpack decodes the bytes that pack has returned. u is an *unpacker. The signature does not name the type, because
	// the linker keeps the types that the signatures of interfaces name.
	unpack(u any, b []byte) (any, error)
}

// encoded is one object of an answer, as bytes of its format. The slices that its methods return alias the answer.
type encoded interface {
	// typeMeta returns the apiVersion and kind that the object has. They may be empty.
	typeMeta() (apiVersion, kind []byte)
	// identity reads the metadata and does not decode the rest.
	identity() identity
	// decode returns the object in a new T, without managedFields if drop is set.
	decode(drop bool) (any, error)
	// status returns the object as a Status, or nil if it is something else.
	status() (*metav1.Status, error)
	// bookmark returns what a bookmark contains. T is not involved, because it may declare neither.
	bookmark() (version string, initialEventsEnd bool)
	// pack returns the bytes of the object, without managedFields if drop is set, and the index of their format in
	// formats. They are valid until the next object. It fails if decode would fail.
	pack(drop bool) (plain []byte, format int, err error)
}

// formatOf returns the index in formats of the format of a Content-Type, or -1. An empty Content-Type means JSON,
// because servers that omit it send JSON.
func formatOf(contentType string) int {
	name := baseType(contentType)
	for i, f := range formats {
		if f.mediaType() == name {
			return i
		}
	}
	return -1
}

// baseType returns a Content-Type without its parameters, or "" if it is malformed.
func baseType(contentType string) string {
	if contentType == "" {
		return MediaTypeJSON
	}
	name, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return name
}
