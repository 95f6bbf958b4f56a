package maskguard

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec"
)

// Wrap returns a RoundTripper that refuses requests whose body has the mark of a masked object. The error is a
// *codec.MaskedError, and nothing is sent. A request costs a search of its body.
//
// It recognises creates, updates, updates of a subresource, and applies. It does not recognise a merge patch, because
// the mark is in both objects that the patch compares, nor an object whose managedFields the program has removed.
func Wrap(next http.RoundTripper) http.RoundTripper { return &guard{next} }

type guard struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody || r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return g.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if closed := r.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read the body of a request: %w", err)
	}
	if fields, ok := marked(body); ok {
		return nil, &codec.MaskedError{Fields: fields}
	}
	sent := r.Clone(r.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	return g.next.RoundTrip(sent)
}

// CloseIdleConnections closes connections without requests.
func (g *guard) CloseIdleConnections() { (&http.Client{Transport: g.next}).CloseIdleConnections() }

// WrappedRoundTripper returns the RoundTripper that sends, as client-go's wrappers do.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// marked returns the fields in the mark of a body. The mark is an entry of managedFields that has nothing but a
// manager. So it ignores a text that quotes a mark: its quotes are escaped in JSON, and it has no length in protobuf.
func marked(body []byte) (fields string, ok bool) {
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		return markedMessage(body)
	}
	_, behind, ok := bytes.Cut(body, []byte(`{"manager":"`+codec.MaskPrefix))
	if !ok {
		return "", false
	}
	text, _, ok := bytes.Cut(behind, []byte(`)"}`))
	return strings.ReplaceAll(string(text), `\"`, `"`), ok
}

// markedMessage is marked for protobuf. A manager has its length in front, and the operation, which is empty, behind
// it.
func markedMessage(body []byte) (fields string, ok bool) {
	for from := 0; ; {
		at := bytes.Index(body[from:], []byte(codec.MaskPrefix))
		if at < 0 {
			return "", false
		}
		at += from
		from = at + 1
		for size := 1; size <= 2; size++ { // of the length
			if at < 1+size || body[at-size-1] != managerTag {
				continue
			}
			manager, n := protowire.ConsumeBytes(body[at-size:])
			if n > 0 && bytes.HasPrefix(manager, []byte(codec.MaskPrefix)) && bytes.HasPrefix(body[at-size+n:], []byte{operationTag, 0}) {
				return strings.TrimSuffix(string(manager[len(codec.MaskPrefix):]), ")"), true
			}
		}
	}
}

// These are the tags of the first two fields of a ManagedFieldsEntry in protobuf.
const managerTag, operationTag = 1<<3 | 2, 2<<3 | 2
