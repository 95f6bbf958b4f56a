package codec

import (
	"mime"
	"strings"
)

// The media types that Kubernetes serves and leat reads.
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

// AcceptOptions says what the answer will be used for.
type AcceptOptions struct {
	// List is set for the answer to a list. A get, a write or a watch is answered with objects.
	List bool
	// JSON leaves protobuf out, for a transport or a server that has only JSON.
	JSON bool
	// DropManagedFields asks the server to leave metadata.managedFields out (KEP-5958). A server that does not know
	// the parameter falls back to the clause without it.
	DropManagedFields bool
}

// Accept returns the value of the Accept header for T, best first: protobuf where T supports it, PartialObjectMetadata
// where T has metadata only, and plain JSON last, so that no server is left without an answer.
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

// media reads a Content-Type. An empty one is JSON, which is what servers that forget it send.
func (c *Codec[T]) media(contentType string) (media, error) {
	switch m := mediaOf(contentType); {
	case m == mediaJSON, m == mediaProtobuf && c.plan.protobuf:
		return m, nil
	default:
		return 0, &MediaTypeError{MediaType: contentType}
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
