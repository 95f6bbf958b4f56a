package apiclient_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestFetchDocument(t *testing.T) {
	const groups = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	c := newClient(t, inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("If-None-Match") == `"1"`:
			w.WriteHeader(http.StatusNotModified)
		case r.URL.Path == "/apis" && r.Header.Get("Accept") == groups:
			w.Header().Set("ETag", `"1"`)
			answer(200, groups, `{"a":1}`)(w, r)
		default:
			answer(200, "application/json", `{"a":2}`)(w, r)
		}
	}))
	first := must.Get(c.FetchDocument(t.Context(), "/apis", apiclient.DocumentOptions{Accept: groups}))(t)
	require.Equal(t, apiclient.Document{ContentType: groups, ETag: `"1"`, Body: []byte(`{"a":1}`)}, first)

	again := must.Get(c.FetchDocument(t.Context(), "/apis", apiclient.DocumentOptions{Accept: groups, ETag: first.ETag}))(t)
	require.Equal(t, apiclient.Document{ETag: `"1"`, NotModified: true}, again)

	other := must.Get(c.FetchDocument(t.Context(), "/apis", apiclient.DocumentOptions{ETag: `"0"`}))(t)
	require.Equal(t, apiclient.Document{ContentType: "application/json", Body: []byte(`{"a":2}`)}, other)
}

func TestInvalidDocuments(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		check  func(error) bool
	}{
		"a page": {answer(200, "text/html", "<title>log in</title>"), func(err error) bool {
			return asError(err, new(*apiclient.ContentTypeError))
		}},
		"protobuf": {answer(200, codec.MediaTypeProtobuf, "k8s\x00"), func(err error) bool {
			return asError(err, new(*apiclient.ContentTypeError))
		}},
		"too large": {answer(200, "application/json", strings.Repeat(" ", codec.DefaultMaxObjectBytes+1)), func(err error) bool {
			return asError(err, new(*codec.TooLargeError))
		}},
		"cut":                          {answer(200, "application/json", `{"a":`), func(err error) bool { return asError(err, new(*json.SyntaxError)) }},
		"forbidden":                    {answer(403, "text/plain", "no"), apierrors.IsForbidden},
		"not modified without an ETag": {answer(304, "", ""), notModified},
	} {
		t.Run(name, func(t *testing.T) {
			var into map[string]any
			err := newClient(t, inMemory(t, tc.answer)).GetDocument(t.Context(), "/apis", &into)
			require.ErrorContains(t, err, "get /apis: ")
			require.True(t, tc.check(err), "%v", err)
			require.Empty(t, into)
		})
	}
}

func notModified(err error) bool {
	var status apierrors.APIStatus
	return asError(err, &status) && status.Status().Code == http.StatusNotModified
}

func TestADocumentEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, inMemory(t, func(w http.ResponseWriter, r *http.Request) {
		answer(200, "application/json", `{"a":`)(w, r)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	d, err := c.FetchDocument(ctx, "/apis", apiclient.DocumentOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, apiclient.Document{}, d)
	_, err = c.FetchDocument(t.Context(), "apis", apiclient.DocumentOptions{})
	require.EqualError(t, err, "get apis: apiclient: the path of a document must begin with a slash")
}
