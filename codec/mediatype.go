package codec

import (
	"mime"
	"strings"

	"github.com/leatproject/leat/internal/quote"
)

// These are the media types of Kubernetes that leat supports.
const (
	MediaTypeJSON     = "application/json"
	MediaTypeProtobuf = "application/vnd.kubernetes.protobuf"
)

// media is a media type without its parameters.
type media int

const (
	mediaJSON media = iota + 1
	mediaProtobuf
)

// AcceptOptions describe the use of the answer.
type AcceptOptions struct {
	// List is set for a list. A get, a write or a watch returns single objects.
	List bool
	// JSON excludes protobuf, for a transport or a server that supports only JSON.
	JSON bool
	// DropManagedFields asks the server to omit metadata.managedFields (KEP-5958). A server that does not know the
	// parameter uses the clause without it.
	DropManagedFields bool
}

// Accept returns the value of the Accept header for T, the best format first: protobuf if T supports it,
// PartialObjectMetadata if T has only metadata, and plain JSON last, so that every server can answer.
//
// T supports protobuf if each field, also in nested structs, has its number in a tag like those of k8s.io/api:
// `protobuf:"bytes,1,opt,name=metadata"`. It also does if T has its own Unmarshal method that decodes the whole object.
// apiVersion, kind and fields that JSON omits need no number.
func (c *Codec[T]) Accept(o AcceptOptions) string {
	types := []string{MediaTypeJSON}
	if c.plan.protobuf && !o.JSON {
		types = []string{MediaTypeProtobuf, MediaTypeJSON}
	}
	var clauses []string
	if c.plan.metadataOnly {
		as := ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		if o.List {
			as = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		}
		clauses = appendClauses(clauses, types, as, o.DropManagedFields)
	}
	clauses = appendClauses(clauses, types, "", o.DropManagedFields)
	return strings.Join(clauses, ",")
}

func appendClauses(clauses, types []string, as string, drop bool) []string {
	if drop {
		for _, t := range types {
			clauses = append(clauses, t+as+";drop=metadata.managedFields")
		}
	}
	for _, t := range types {
		clauses = append(clauses, t+as)
	}
	return clauses
}

// media parses a Content-Type. An empty one means JSON, because servers that omit it send JSON.
func (c *Codec[T]) media(contentType string) (media, error) {
	switch m := mediaOf(contentType); {
	case m == mediaJSON, m == mediaProtobuf && c.plan.protobuf:
		return m, nil
	default:
		return 0, &MediaTypeError{MediaType: quote.Short(contentType, maxQuoted)}
	}
}

func mediaOf(contentType string) media {
	if contentType == "" {
		return mediaJSON
	}
	name, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return 0
	case name == MediaTypeJSON:
		return mediaJSON
	case name == MediaTypeProtobuf:
		return mediaProtobuf
	default:
		return 0
	}
}
