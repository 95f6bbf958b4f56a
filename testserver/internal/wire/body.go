package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// maxBody is the largest size in bytes of a request body that kube-apiserver accepts.
const maxBody = 3 << 20

// ReadBody reads the body of a request.
func ReadBody(r *http.Request) ([]byte, error) { return AppendBody(nil, r) }

// AppendBody reads the body of a request into the room behind dst, which is empty.
func AppendBody(dst []byte, r *http.Request) ([]byte, error) {
	body := bytes.NewBuffer(dst)
	body.Grow(int(min(max(r.ContentLength, 0), 64<<10)) + bytes.MinRead) // the buffer of most bodies never grows
	if _, err := body.ReadFrom(io.LimitReader(r.Body, maxBody+1)); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read the request: %v", err))
	}
	if body.Len() > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body.Bytes(), nil
}

// ContentType returns the media type of a request without parameters. Without the header it is JSON.
func ContentType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return "application/json"
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return kind
}

// ReadObject reads the body of a request as one object. It answers with Warning headers about unknown and repeated
// fields.
func ReadObject(w http.ResponseWriter, r *http.Request, d *registry.Definition, to registry.Target) (object.Tree, error) {
	body, err := ReadBody(r)
	if err != nil {
		return nil, err
	}
	return DecodeObject(w, r, d, to, ContentType(r), body)
}

// DecodeObject decodes a body with the Schema of a resource, and treats unknown and repeated fields as the request
// demands.
func DecodeObject(
	w http.ResponseWriter, r *http.Request, d *registry.Definition, to registry.Target, mediaType string, body []byte,
) (object.Tree, error) {
	if !slices.Contains(d.Schema.MediaTypes(), mediaType) {
		return nil, Unsupported(d.Schema.MediaTypes()...)
	}
	tree, problems, err := d.Schema.Decode(to, mediaType, body)
	if err != nil {
		return nil, err
	}
	return tree, ReportFields(w, r, d.In(to.Served), problems)
}

// Unsupported returns the 415 that lists the supported types.
func Unsupported(kinds ...string) error {
	return Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(kinds, ", "))
}

// Undecodable returns the 400 for a body that is not an object of a kind. got is the kind that the body names, or nil.
func Undecodable(kind string, got *schema.GroupVersionKind, err error, body []byte) error {
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, summary(body)))
}

// summary shows the beginning of a body: text that looks like JSON, or bytes in hexadecimal.
func summary(body []byte) string {
	if len(body) == 0 {
		return "<empty>"
	}
	const shown = 30
	more := ""
	if len(body) > shown {
		body, more = body[:shown], " ..."
	}
	if body[0] == '{' {
		return string(body) + more
	}
	return hex.EncodeToString(body) + more
}

// OtherVersion returns the 400 for a body in another version than the path.
func OtherVersion(got, want schema.GroupVersion) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
}

// StrictProblems separates unknown and repeated fields, which are problems of an object that was decoded, from errors.
func StrictProblems(err error) ([]string, error) {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil, err
	}
	var problems []string
	for _, e := range strict.Errors() {
		problems = append(problems, e.Error())
	}
	return problems, nil
}

// ReadConfiguration reads the configuration of server-side apply from the body of a request.
func ReadConfiguration(r *http.Request) (object.Tree, error) {
	body, err := ReadBody(r)
	if err != nil {
		return nil, err
	}
	encoded, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
	}
	if string(encoded) == "null" {
		return object.Tree{}, nil
	}
	config, err := object.Decode(encoded)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: error unmarshaling JSON: while decoding JSON: %v", err))
	}
	return config, nil
}

// DecodeText parses one object in JSON or YAML.
func DecodeText(text []byte) (object.Tree, error) {
	if !json.Valid(text) { // JSON is YAML, but the reader of JSON is faster
		encoded, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, err
		}
		text = encoded
	}
	return object.Decode(text)
}

// Buffer holds the body of a request or of an answer, until the request ends. A write of 1 KiB makes less garbage by a
// tenth with it.
type Buffer struct{ Bytes []byte }

// maxBuffer is the size of the largest buffer that is kept. Few objects are larger.
const maxBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// TakeBuffer returns an empty buffer.
func TakeBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Release ends the use of the bytes. Decoded objects have copies, and so has an http.ResponseWriter after a Write
// without an error.
func (b *Buffer) Release() {
	if cap(b.Bytes) <= maxBuffer {
		b.Bytes = b.Bytes[:0]
		buffers.Put(b)
	}
}
