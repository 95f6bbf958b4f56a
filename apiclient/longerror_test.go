package apiclient_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

const marker = "MARKER"

// TestErrorsAreShort has servers and proxies with long texts in every place that an error may quote. Each error in the
// chain must be short, and must not quote content of objects.
func TestErrorsAreShort(t *testing.T) {
	huge := strings.Repeat(marker, 50_000/len(marker))
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"data":{"a":"` + marker + `"}}`
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	const said, unsaid = true, false // whether the error quotes the server's text, up to a limit
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		quoted  bool
	}{
		"the message of a Status":       {answer(403, jsonType, status(403, "Forbidden", huge)), said},
		"the message of a success":      {answer(200, jsonType, status(403, "Forbidden", huge)), said},
		"the reason of a Status":        {answer(403, jsonType, status(403, huge, "no")), unsaid},
		"a Status that is cut":          {answer(403, jsonType, strings.TrimSuffix(status(403, "Forbidden", huge), "}")), said},
		"a text":                        {answer(500, "text/plain", huge), said},
		"a page":                        {answer(500, "text/html", "<html><title>"+huge+"</title>"), said},
		"a page instead of an object":   {answer(200, "text/html", "<html><title>"+huge+"</title>"), said},
		"an object as failure":          {answer(500, jsonType, secret), unsaid},
		"half an object as failure":     {answer(500, jsonType, secret[:60]+marker), unsaid},
		"an object as failure, as text": {answer(500, "text/plain", secret), unsaid},
		"an object of another type":     {answer(200, "text/plain", secret), unsaid},
		"an object of YAML":             {answer(500, "text/plain", "apiVersion: v1\nkind: Secret\ndata:\n  a: "+marker), unsaid},
		"a message as failure":          {answer(500, protoType, "k8s\x00"+huge), unsaid},
		"a field":                       {answer(200, jsonType, `{"metadata":{"name":"x","creationTimestamp":"`+huge+`"}}`), unsaid},
		"a content type":                {answer(200, "text/"+huge, "x"), said},
		"a content encoding":            {header("Content-Encoding", huge, answer(200, jsonType, "{}")), said},
		"a place to go to":              {redirect("http://elsewhere/" + huge), said},
		"an unreadable place to go to":  {redirect("http://elsewhere:" + huge), said},
		"a status line":                 {raw("HTTP/1.1 " + huge + "\r\n\r\n"), said},
		"no HTTP":                       {raw(huge + "\r\n\r\n"), said},
		"a line of the head":            {raw("HTTP/1.1 200 OK\r\n" + huge + "\r\n\r\n"), said},
		"a length":                      {raw("HTTP/1.1 200 OK\r\nContent-Length: " + huge + "\r\n\r\n"), said},
		"a head without end":            {raw("HTTP/1.1 200 OK\r\nA: " + strings.Repeat(huge, 40) + "\r\n\r\n"), said},
		"a transfer encoding":           {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + huge + "\r\n\r\n"), said},
		"a length of a chunk":           {raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + huge), said},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := onLoopback(t, c.handler)
			cfg.Retry.Max = -1
			client := newClient(t, cfg)
			r := pods(t, cfg)
			_, get := r.Get(t.Context(), web, metav1.GetOptions{})
			_, list := r.List(t.Context(), api.Options[*corev1.Pod]{}, func(*corev1.Pod) error { return nil })
			var watch error
			for _, watch = range r.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
			}
			var into struct {
				Metadata struct{ CreationTimestamp metav1.Time }
				Data     map[string]int
				Code     int8
			}
			document := client.GetDocument(t.Context(), "/version", &into)
			_, stream := client.Stream(t.Context(), podResource, web, "log", nil)
			for operation, err := range map[string]error{"get": get, "list": list, "watch": watch, "document": document, "stream": stream} {
				for ; err != nil; err = errors.Unwrap(err) {
					require.LessOrEqual(t, len(err.Error()), 1400, operation)
					if !c.quoted {
						require.NotContains(t, err.Error(), marker, operation)
					}
					if _, last := err.(*apiclient.TransportError); last {
						break // the errors below are those of the standard library
					}
				}
			}
			require.Error(t, get)
		})
	}
}

func TestDocumentsAreNotQuoted(t *testing.T) {
	for _, body := range []string{
		`{"code": 77777777777777777777777777777777777777777777}`, `{"time": "` + marker + `"}`, `{"code": "` + marker + `"}`, marker,
	} {
		client := newClient(t, onLoopback(t, answer(200, jsonType, body)))
		var into struct {
			Code int
			Time metav1.Time
		}
		err := client.GetDocument(t.Context(), "/version", &into)
		require.ErrorContains(t, err, "get /version: read the answer: ")
		require.NotContains(t, err.Error(), marker)
		require.NotContains(t, err.Error(), "77777")
	}
}

// TestErrorsOfTheTransportAreShort has texts that a peer chooses: the names in its certificate, and the debug data of a
// GOAWAY frame.
func TestErrorsOfTheTransportAreShort(t *testing.T) {
	huge := strings.Repeat(marker, 50_000/len(marker))
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: huge}, Issuer: pkix.Name{CommonName: huge}, DNSNames: []string{"a"}}
	for range 5000 {
		certificate.DNSNames = append(certificate.DNSNames, marker+".example.com")
	}
	for name, err := range map[string]error{
		"names of a certificate": &apiclient.CertificateError{
			Host: "server", Certificate: certificate, Err: x509.HostnameError{Certificate: certificate, Host: "server"},
		},
		"debug data of GOAWAY": &apiclient.TransportError{Err: fmt.Errorf("http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=%q", huge)},
	} {
		require.Less(t, len(err.Error()), 1400, name)
		require.Less(t, len((&apiclient.TransportError{Err: err}).Error()), 1400, name)
	}
}
