package apiclient_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// FuzzStatusErrors makes errors from arbitrary answers. The result always has a code and a message, and never a
// credential.
func FuzzStatusErrors(f *testing.F) {
	f.Add(403, jsonType, "", []byte(status(403, "Forbidden", "no")))
	f.Add(429, "text/plain", "7", []byte("later"))
	f.Add(503, "", "Mon, 02 Jan 2106 15:04:05 GMT", []byte(`{"kind":"Status","details":{"causes":[{}`))
	f.Add(502, "text/html", "x", []byte("<html><title>\xff</title>"))
	f.Add(500, protoType, "-1", []byte("k8s\x00\x0a\x03"))
	f.Add(0, jsonType+"; charset=x", "", []byte(`{"kind":"Status","code":{"a":1},"message":7}`))
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://h", BearerToken: apiclient.NewSecret(secret)}))(f)
	f.Fuzz(func(t *testing.T, code int, contentType, retryAfter string, body []byte) {
		h := http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}}
		err := c.StatusErrorOf(code, h, append(body, secret...))
		var s apierrors.APIStatus
		require.True(t, errors.As(err, &s))
		require.NotEmpty(t, err.Error())
		require.NotContains(t, err.Error(), secret)
	})
}
