package codec

import (
	"errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// Marshal encodes an object like Kubernetes: as JSON, or in protobuf's envelope if mediaType requests it and the object
// has its own Marshal method. obj is a pointer to a struct; Marshal does not change it. If the object's apiVersion and
// kind are empty or not declared, Marshal uses those of resource; an empty resource.Kind adds nothing. The error is a
// MediaTypeError if the object cannot be encoded in that format, or an error of encoding/json. It corresponds to
// runtime.Encode of client-go, without a scheme.
func Marshal(obj any, mediaType string, resource api.Resource) ([]byte, error) {
	if at := formatOf(mediaType); at >= 0 {
		if b, err := formats[at].marshal(obj, resource); err != errNotEncodable {
			return b, err
		}
	}
	return nil, &MediaTypeError{MediaType: quote.Short(mediaType, maxQuoted)}
}

// errNotEncodable means that an object has no encoding in a format.
var errNotEncodable = errors.New("not encodable")
