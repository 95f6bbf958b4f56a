package codec

// These are the media types of Kubernetes that leat supports.
const (
	MediaTypeJSON     = "application/json"
	MediaTypeProtobuf = "application/vnd.kubernetes.protobuf"
)

// AcceptOptions describe the use of the answer.
type AcceptOptions struct {
	// List is set for a list. A get, a write or a watch returns single objects.
	List bool
	// JSON excludes all formats except JSON, for a transport or a server that supports only JSON.
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
func (c *Codec[T]) Accept(o AcceptOptions) string { return c.d.accept(o) }

func (d *decoder) accept(o AcceptOptions) string {
	var as []string
	if d.target.metadataOnly {
		as = append(as, ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		if o.List {
			as[0] = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		}
	}
	var clauses []byte
	for _, as := range append(as, "") {
		if o.DropManagedFields {
			clauses = d.appendClauses(clauses, o, as+";drop=metadata.managedFields")
		}
		clauses = d.appendClauses(clauses, o, as)
	}
	return string(clauses[1:])
}

// appendClauses adds a comma and a clause for each format of the target.
func (d *decoder) appendClauses(clauses []byte, o AcceptOptions, parameters string) []byte {
	for i, f := range formats {
		if name := f.mediaType(); d.readers[i] != nil && (!o.JSON || name == MediaTypeJSON) {
			clauses = append(append(append(clauses, ','), name...), parameters...)
		}
	}
	return clauses
}
