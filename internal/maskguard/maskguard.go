package maskguard

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

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
	if fields, ok := marked(body, r.Header.Get("Content-Type")); ok {
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

// marked returns the fields in the mark of a body. In JSON, the mark is the manager of an entry, so a text that quotes
// one is no mark.
func marked(body []byte, contentType string) (fields string, ok bool) {
	mark, isJSON := codec.MaskPrefix, strings.Contains(contentType, "json")
	if isJSON {
		mark = `"manager":"` + mark
	}
	_, behind, ok := bytes.Cut(body, []byte(mark))
	if !ok {
		return "", false
	}
	end := bytes.Index(behind, []byte(")\""))
	if !isJSON {
		end = bytes.LastIndexByte(behind[:min(len(behind), maxFields)], ')')
	}
	if end >= 0 {
		behind = behind[:end]
	}
	fields = string(behind[:min(len(behind), maxFields)])
	if isJSON {
		fields = strings.ReplaceAll(fields, `\"`, `"`)
	}
	return fields, true
}

// maxFields limits the fields in an error.
const maxFields = 1 << 10
