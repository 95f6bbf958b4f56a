package apiclient_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	onePodList = `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"},"items":[` + onePod + `]}`
	jsonType   = "application/json"
	protoType  = "application/vnd.kubernetes.protobuf"
)

func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

// raw sends exactly these bytes and closes the connection.
func raw(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, bytes)
		_ = c.Close()
	}
}

func reset(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// header adds a header to an answer.
func header(name, value string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		h(w, r)
	}
}

// oddAnswers are unexpected answers of servers and proxies. Each must end a get, a list and a watch with a typed error
// of one line that names the fault.
var oddAnswers = []struct {
	name    string
	handler http.HandlerFunc
	want    string // in the text of the error
	is      func(error) bool
}{
	{"forbidden", answer(403, jsonType, status(403, "Forbidden", "pods is forbidden: no")), "pods is forbidden: no", apierrors.IsForbidden},
	{"unauthorized", answer(401, jsonType, status(401, "Unauthorized", "Unauthorized")), "Unauthorized", apierrors.IsUnauthorized},
	{"not found", answer(404, jsonType, status(404, "NotFound", "no pods")), "no pods", apierrors.IsNotFound},
	{"not found as text", answer(404, "text/plain", "404 page not found\n"), "the server does not serve this resource (404 page not found)", apierrors.IsNotFound},
	{"not found by a proxy", answer(404, "text/plain", "no route"), "the server answered 404 Not Found: no route", apierrors.IsNotFound},
	{"gone", answer(410, jsonType, status(410, "Expired", "too old")), "too old", apierrors.IsResourceExpired},
	{"gone as text", answer(410, "text/plain", "old"), "410 Gone: old", apierrors.IsGone},
	{"conflict", answer(409, jsonType, status(409, "Conflict", "changed")), "changed", apierrors.IsConflict},
	{"invalid", answer(422, jsonType, status(422, "Invalid", "bad")), "bad", apierrors.IsInvalid},
	{"unprocessable as text", answer(422, "text/plain", "bad"), "422 Unprocessable Entity: bad", apierrors.IsInvalid},
	{"method not allowed", answer(405, "text/plain", "no"), "405 Method Not Allowed: no", apierrors.IsMethodNotSupported},
	{"not acceptable", answer(406, jsonType, status(406, "NotAcceptable", "only tables")), "only tables", apierrors.IsNotAcceptable},
	{"too large", answer(413, "", ""), "413 Request Entity Too Large", apierrors.IsRequestEntityTooLargeError},
	{"unsupported", answer(415, "text/plain", "what"), "415 Unsupported Media Type: what", apierrors.IsUnsupportedMediaType},
	{"too many", header("Retry-After", "7", answer(429, "text/plain", "later")), "429 Too Many Requests: later", delayed(7, apierrors.IsTooManyRequests)},
	{"too many, no hint", answer(429, "", ""), "429 Too Many Requests", apierrors.IsTooManyRequests},
	{"too many, said twice", header("Retry-After", "7", answer(429, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"retryAfterSeconds":3}}`)), "429", delayed(3, apierrors.IsTooManyRequests)},
	{"unavailable until a date", header("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), answer(503, "text/plain", "starting")), "503 Service Unavailable: starting", apierrors.IsServiceUnavailable},
	{"unavailable with nonsense", header("Retry-After", "soon", answer(503, "", "")), "503", delayed(0, apierrors.IsServiceUnavailable)},
	{"unavailable in the past", header("Retry-After", "-5", answer(503, "", "")), "503", delayed(0, apierrors.IsServiceUnavailable)},
	{"unavailable for years", header("Retry-After", "99999999999999999999999", answer(503, "", "")), "503", delayed(86400, apierrors.IsServiceUnavailable)},
	{"unavailable for millennia", header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", answer(503, "", "")), "503", delayed(86400, apierrors.IsServiceUnavailable)},
	{"too many, for longer than 32 bits hold", answer(429, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"retryAfterSeconds":99999999999}}`), "429", delayed(0, apierrors.IsTooManyRequests)},
	{"unavailable for weeks", header("Retry-After", "9999999", answer(503, "", "")), "503", delayed(86400, apierrors.IsServiceUnavailable)},
	{"internal error", answer(500, jsonType, status(500, "InternalError", "etcd")), "etcd", apierrors.IsInternalError},
	{"internal error of no kind", answer(500, jsonType, `{"error":"boom"}`), `500 Internal Server Error: {"error":"boom"}`, apierrors.IsInternalError},
	{"forbidden in half a Status", answer(403, jsonType, status(403, "Forbidden", "no, said half")[:110]), ": no, said half", apierrors.IsForbidden},
	{"internal error in half a Status", answer(500, jsonType, `{"kind":"Status","apiVersion":"v1","mess`), "500 Internal Server Error", apierrors.IsInternalError},
	{"internal error with odd fields", answer(500, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"boom","code":"five"}`), "boom", apierrors.IsInternalError},
	{"error in bad protobuf", answer(500, protoType, "k8s\x00\xff\xff\xff"), "500 Internal Server Error", apierrors.IsInternalError},
	{"relabelled Status", answer(403, "text/plain; charset=utf-8", status(403, "Forbidden", "no, really")), ": no, really", apierrors.IsForbidden},
	{"Status without a content type", func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		answer(403, "", status(403, "Forbidden", "no"))(w, r)
	}, ": no", apierrors.IsForbidden},
	{"gateway page", answer(502, "text/html", "<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"), `502 Bad Gateway: a page of HTML titled "502 Bad\nGateway"`, apierrors.IsInternalError},
	{"gateway time-out", answer(504, "text/html", "<!DOCTYPE html><p>slow"), "504 Gateway Timeout: a page of HTML", apierrors.IsTimeout},
	{"unknown code", answer(599, "text/plain", "?"), "the server answered 599: ?", isStatus(599)},
	{"teapot of control characters", answer(418, "text/plain", "a\x00\x1b[31mb\r\nc"), "418 I'm a teapot: a [31mb c", isStatus(418)},
	{"very long text", answer(500, "text/plain", strings.Repeat("long ", 100_000)), "long long", short(apierrors.IsInternalError)},
	{"not modified", answer(304, "", ""), "304 Not Modified", isStatus(304)},
	{"redirect to nowhere", answer(302, "text/plain", "moved"), "302 Found: moved", isStatus(302)},

	{"Status of wrong types", answer(403, jsonType, `{"kind":"Status","apiVersion":"v1","status":7,"message":{"a":1},"reason":["x"],"code":"403","details":[]}`), "403 Forbidden", apierrors.IsForbidden},
	{"Status with wrong details", answer(404, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no such pod","reason":"NotFound","details":{"causes":{"a":1},"retryAfterSeconds":"3"}}`), "no such pod", apierrors.IsNotFound},
	{"Status with a cause of null", answer(422, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad","reason":"Invalid","code":422,"details":{"causes":[null]}}`), ": bad", apierrors.IsInvalid},
	{"Status with a huge code", answer(403, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":99999999999}`), ": no", apierrors.IsForbidden},
	{"Status of success in a failure", answer(500, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Success"}`), "500 Internal Server Error", apierrors.IsInternalError},
	{"Status of another version", answer(403, jsonType, `{"kind":"Status","apiVersion":"v9","status":"Failure","message":"no"}`), ": no", apierrors.IsForbidden},
	{"Status twice", answer(403, jsonType, status(403, "Forbidden", "first")+status(404, "NotFound", "second")), "", apierrors.IsForbidden},
	{"Status in an array", answer(403, jsonType, "["+status(403, "Forbidden", "no")+"]"), "403 Forbidden", apierrors.IsForbidden},
	{"Status with a mark in front", answer(403, jsonType, "\ufeff"+status(403, "Forbidden", "no")), "403 Forbidden", apierrors.IsForbidden},
	{"Status that says nothing", answer(403, jsonType, `{"kind":"Status","apiVersion":"v1"}`), "403 Forbidden", apierrors.IsForbidden},
	{"Status that is not UTF-8", answer(403, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`+"\xff\xfe"+`"}`), "", apierrors.IsForbidden},
	{"an error that nests", answer(500, jsonType, strings.Repeat(`{"a":`, 5_000)), "500 Internal Server Error", short(apierrors.IsInternalError)},
	{"an error of null", answer(500, jsonType, `null`), "500 Internal Server Error", apierrors.IsInternalError},
	{"an error of zeroes", answer(500, jsonType, strings.Repeat("\x00", 1000)), "500 Internal Server Error", apierrors.IsInternalError},
	{"an error of another charset", answer(500, "text/plain; charset=utf-16", "\xff\xfen\x00o\x00"), "500 Internal Server Error", apierrors.IsInternalError},
	{"a choice", answer(300, "text/plain", "which"), "300 Multiple Choices: which", isStatus(300)},
	{"a redirect without a place", answer(307, "text/plain", ""), "307 Temporary Redirect", isStatus(307)},
	{"switching protocols", raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), "101 Switching Protocols", isStatus(101)},

	{"Status of failure in a success", answer(200, jsonType, status(404, "NotFound", "")), "", nil},
	{"Status of success", answer(200, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Success"}`), "", nil},
	{"Status in protobuf in a success", answer(200, protoType, "k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x00"), "", nil},
	{"something else", answer(200, jsonType, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"web"}}`), "", nil},
	{"metadata that is a number", answer(200, jsonType, `{"kind":"Pod","apiVersion":"v1","metadata":7}`), "", nil},
	{"an object and more", answer(200, jsonType, onePod+onePod), "", nil},
	{"an object with a mark in front", answer(200, jsonType, "\ufeff"+onePod), "", nil},
	{"an object in another charset", answer(200, jsonType+"; charset=utf-16", "{\x00}\x00"), "", nil},
	{"nesting", answer(200, jsonType, strings.Repeat(`{"a":`, 100_000)), "", nil},
	{"zeroes", answer(200, jsonType, strings.Repeat("\x00", 1000)), "", nil},
	{"a number", answer(200, jsonType, strings.Repeat("9", 1000)), "", nil},
	{"no more than a length of protobuf", answer(200, protoType, "k8s\x00\x12\xff\xff\xff\xff\x0f"), "", nil},
	{"protobuf without end of a number", answer(200, protoType, "k8s\x00"+strings.Repeat("\xff", 100)), "", nil},
	{"frames of protobuf that lie", answer(200, protoType+";stream=watch", "\x7f\xff\xff\xffk8s\x00"), "", nil},
	{"two content types", header("Content-Type", "text/html, application/json", answer(200, "", onePod)), "text/html, application/json", isContentType},

	{"login page", answer(200, "text/html; charset=utf-8", "<html><title>Sign in</title>"), `content type "text/html; charset=utf-8", which cannot contain objects: a page of HTML titled "Sign in"`, isContentType},
	{"text", answer(200, "text/plain", "ok"), `which cannot contain objects: ok`, isContentType},
	{"YAML", answer(200, "application/yaml", "kind: Pod"), "an object of Kubernetes, which is not shown", isContentType},
	{"CBOR", answer(200, "application/cbor", "\xd9\xd9\xf7"), `"application/cbor"`, isContentType},
	{"nonsense content type", answer(200, "application json;;", "{}"), `"application json;;"`, isContentType},
	{"a table", answer(200, jsonType+";as=Table", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`), "", nil},
	{"an array", answer(200, jsonType, `[]`), "", nil},
	{"a string", answer(200, jsonType, `"ok"`), "", nil},
	{"null", answer(200, jsonType, `null`), "", nil},
	{"truncated JSON", answer(200, jsonType, `{"apiVersion":"v1","kind":"Pod`), "", nil},
	{"text labelled JSON", answer(200, jsonType, `<html>`), "", nil},
	{"JSON labelled protobuf", answer(200, protoType, onePod), "", nil},
	{"truncated protobuf", answer(200, protoType, "k8s\x00\x0a\x05"), "", nil},
	{"Status instead of an object", answer(200, jsonType, status(500, "InternalError", "late")), "", nil},
	{"bad gzip", header("Content-Encoding", "gzip", answer(200, jsonType, onePod)), "", nil},
	{"truncated gzip", header("Content-Encoding", "gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, onePod)
		_ = z.Flush()
	}), "", nil},
	{"gzip of the wrong sum", zipped(zip(onePod), func(z []byte) []byte { z[len(z)-8]++; return z }), "", nil},
	{"gzip of the wrong size", zipped(zip(onePod), func(z []byte) []byte { z[len(z)-1]++; return z }), "", nil},
	{"gzip cut in its head", zipped(zip(onePod)[:5], nil), "unexpected EOF", isUnexpectedEOF},
	{"gzip cut in its sum", zipped(zip(onePod)[:len(zip(onePod))-3], nil), "", nil},
	{"gzip with garbage inside", zipped(zip(onePod), func(z []byte) []byte { z[10] = 0xff; return z }), "", nil},
	{"gzip with garbage behind", zipped(append(zip(onePod), "more"...), nil), "", nil},
	{"gzip with half a member behind", zipped(append(zip(onePod), zip("  ")[:14]...), nil), "", nil},
	{"gzip twice", zipped(zip(string(zip(onePod))), nil), "", nil},
	{"deflate", header("Content-Encoding", "deflate", answer(200, jsonType, onePod)), `content encoding "deflate"`, nil},
	{"an error in bad gzip", header("Content-Encoding", "gzip", answer(403, jsonType, status(403, "Forbidden", "no"))), "403 Forbidden", apierrors.IsForbidden},
	{"an error in gzip", zippedWith(403, zip(status(403, "Forbidden", "no, said shortly"))), "no, said shortly", apierrors.IsForbidden},
	{"unknown encoding", header("Content-Encoding", "br", answer(200, jsonType, onePod)), `content encoding "br"`, nil},
	{"a wrong length", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n{\"kind\":"), "unexpected EOF", isUnexpectedEOF},
	{"broken chunk", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "", nil},
	{"chunks without end", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"kin\r\n"), "unexpected EOF", isUnexpectedEOF},
	// Without "close", the next call may get the connection before net/http notices the rest of the answer.
	{"longer than its length", raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n" + onePod), "unexpected EOF", isUnexpectedEOF},
	{"a text instead of a length", raw("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"), "Content-Length", nil},
	{"a negative length", raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"), "Content-Length", nil},
	{"a length beyond numbers", raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}"), "Content-Length", nil},
	{"a length of petabytes", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000000000000000\r\n\r\n{"), "unexpected EOF", isUnexpectedEOF},
	{"an error with a wrong length", raw("HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n" + status(403, "Forbidden", "no")), ": no", apierrors.IsForbidden},
	{"a chunk shorter than it says", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"kind\":\r\n0\r\n\r\n"), "unexpected EOF", isUnexpectedEOF},
	{"a chunk longer than it says", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\"kind\":\r\n"), "", nil},
	{"a chunk beyond numbers", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{"), "", nil},
	{"a chunk of petabytes", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n7ffffffffffffff\r\n{"), "unexpected EOF", isUnexpectedEOF},
	{"an endless line before a chunk", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 1<<20)), "", nil},
	{"an unknown transfer encoding", raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: rot13\r\n\r\n{}"), "transfer encoding", nil},
	{"bad header", raw("HTTP/1.1 200 OK\r\nno colon\r\n\r\n{}"), "", nil},
	{"a text instead of a code", raw("HTTP/1.1 OK 200\r\n\r\n{}"), "", nil},
	{"news without end", raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 100_000)), "", nil},
	{"TLS", raw("\x15\x03\x01\x00\x02\x02\x16"), "malformed HTTP", nil},
	{"two lengths", raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), "", nil},
	{"no HTTP", raw("SSH-2.0-OpenSSH_9.6\r\n"), "malformed HTTP", nil},
	{"no answer", raw(""), "EOF", nil},
	{"half a header", raw("HTTP/1.1 200 OK\r\nContent-Ty"), "", nil},
	{"endless header", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 11<<20)), "", nil},
	{"reset", reset, "", func(err error) bool { return isErrno(err, syscall.ECONNRESET) || isErrno(err, syscall.EPIPE) }},
}

func TestOddAnswers(t *testing.T) {
	require.GreaterOrEqual(t, len(oddAnswers), 100)
	for _, c := range oddAnswers {
		cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/fine") {
				answer(200, jsonType, onePod)(w, r)
				return
			}
			c.handler(w, r)
		})
		cfg.BearerToken = apiclient.NewSecret(secret)
		cfg.Retry.Max = -1 // the answers must not be repeated
		r := pods(t, cfg)
		check := func(t *testing.T, operation string, err error) {
			t.Helper()
			require.Error(t, err)
			require.ErrorContains(t, err, operation+": ")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n", "one line")
			require.NotContains(t, err.Error(), secret)
			require.Equal(t, 1, strings.Count(err.Error(), operation+": "), "wrapped once")
			if c.is != nil {
				require.True(t, c.is(err), "%T %v", err, err)
			}
			require.True(t, isTyped(err), "%T %v", err, err)
			_, err = r.Get(t.Context(), api.Key{Namespace: "default", Name: "fine"}, metav1.GetOptions{})
			require.NoError(t, err, "the next call works")
		}
		t.Run(c.name+"/get", func(t *testing.T) {
			_, err := r.Get(t.Context(), web, metav1.GetOptions{})
			check(t, "get pods default/web", err)
		})
		t.Run(c.name+"/list", func(t *testing.T) {
			_, err := r.List(t.Context(), api.Options[*corev1.Pod]{}, func(*corev1.Pod) error { return nil })
			check(t, "list pods", err)
		})
		t.Run(c.name+"/watch", func(t *testing.T) {
			var last error
			for _, err := range r.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
				require.NoError(t, last, "an error is the last thing that a watch yields")
				last = err
			}
			check(t, "watch pods", last)
		})
	}
}

// isTyped reports whether a caller can find out the kind of the error.
func isTyped(err error) bool {
	return asError(err, new(apierrors.APIStatus)) || asError(err, new(*apiclient.ContentTypeError)) ||
		asError(err, new(*apiclient.TransportError)) || asError(err, new(*api.UndecodableError)) ||
		isError(err, codec.ErrMalformed) || isError(err, codec.ErrTooLarge) || isError(err, codec.ErrUnexpectedKind) ||
		isError(err, codec.ErrUnknownEvent) || isError(err, codec.ErrMediaType)
}

// zip compresses a text.
func zip(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.Bytes()
}

// zipped answers with compressed bytes after a change of them.
func zipped(b []byte, change func([]byte) []byte) http.HandlerFunc {
	if change != nil {
		b = change(b)
	}
	return zippedWith(200, b)
}

func zippedWith(code int, b []byte) http.HandlerFunc {
	return header("Content-Encoding", "gzip", answer(code, jsonType, string(b)))
}

func delayed(seconds int, is func(error) bool) func(error) bool {
	return func(err error) bool {
		got, ok := apierrors.SuggestsClientDelay(err)
		return is(err) && got == seconds && ok == (seconds > 0)
	}
}

func isStatus(code int32) func(error) bool {
	return func(err error) bool {
		status, ok := asStatus(err)
		return ok && status.Code == code
	}
}

func asStatus(err error) (metav1.Status, bool) {
	var s apierrors.APIStatus
	if !asError(err, &s) {
		return metav1.Status{}, false
	}
	return s.Status(), true
}

func short(is func(error) bool) func(error) bool {
	return func(err error) bool { return is(err) && len(err.Error()) < 1000 }
}

func isContentType(err error) bool {
	var typed *apiclient.ContentTypeError
	return asError(err, &typed)
}

func TestAWatchThatTheServerEnds(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"at once":      answer(200, jsonType+";stream=watch", ""),
		"after events": answer(200, jsonType+";stream=watch", `{"type":"ADDED","object":`+onePod+"}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			for event, err := range pods(t, onLoopback(t, h)).Watch(t.Context(), api.Options[*corev1.Pod]{}) {
				require.NoError(t, err)
				require.Equal(t, "7", event.ResourceVersion)
			}
		})
	}
}

func TestErrorEventsEndAWatch(t *testing.T) {
	first := `{"type":"ADDED","object":` + onePod + `}`
	for name, c := range map[string]struct {
		frame string
		is    func(error) bool
	}{
		"expired":      {`{"type":"ERROR","object":` + status(410, "Expired", "too old resource version") + `}`, apierrors.IsResourceExpired},
		"too many":     {`{"type":"ERROR","object":` + status(429, "TooManyRequests", "slow down") + `}`, apierrors.IsTooManyRequests},
		"no Status":    {`{"type":"ERROR","object":{"oops":1}}`, apierrors.IsInternalError},
		"unknown type": {`{"type":"NEWS","object":{}}`, func(err error) bool { return isError(err, codec.ErrUnknownEvent) }},
		"cut":          {`{"type":"ADDED","obj`, isUnexpectedEOF},
		"garbage":      {`}`, func(err error) bool { return isError(err, codec.ErrMalformed) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := pods(t, onLoopback(t, answer(200, jsonType, first+"\n"+c.frame)))
			var names []string
			var last error
			for event, err := range r.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
				if err != nil {
					last = err
					continue
				}
				names = append(names, event.Object.Name)
			}
			require.Equal(t, []string{"web"}, names)
			require.ErrorContains(t, last, "watch pods: ")
			require.True(t, c.is(last), "%v", last)
		})
	}
}

func TestRefusedConnectionsAreRecognised(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	r := pods(t, apiclient.Config{Host: "http://" + addr})
	_, err := r.List(t.Context(), api.Options[*corev1.Pod]{}, nil)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "list pods: dial tcp "+addr)
	for _, err := range r.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
}

func TestAnErrorOfEachEndsTheList(t *testing.T) {
	r := pods(t, onLoopback(t, answer(200, jsonType, onePodList)))
	require.ErrorIs(t, must.Err(r.List(t.Context(), api.Options[*corev1.Pod]{}, func(*corev1.Pod) error { return io.ErrShortBuffer })), io.ErrShortBuffer)
	var got []*corev1.Pod
	meta := must.Get(r.List(t.Context(), api.Options[*corev1.Pod]{}, keep(&got)))(t)
	require.Len(t, got, 1)
	require.Equal(t, "9", meta.ResourceVersion)
}

func TestAServerThatEchoesCredentials(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprint("bad request: ", r.Header), http.StatusBadRequest)
	}
	cfg := onLoopback(t, echo)
	for name, change := range map[string]func(*apiclient.Config){
		"token": func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret(secret) },
		"basic": func(c *apiclient.Config) { c.Username, c.Password = "joe", apiclient.NewSecret(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			c := cfg
			change(&c)
			_, err := pods(t, c).Get(t.Context(), web, metav1.GetOptions{})
			require.True(t, apierrors.IsBadRequest(err))
			require.ErrorContains(t, err, "REDACTED")
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
			require.NotContains(t, fmt.Sprintf("%+v", err), "am9lOnMz", "base64")
		})
	}
}

// TestHalfATokenIsNotQuoted has tokens that are longer than the quoted part of an answer, as real ones are.
func TestHalfATokenIsNotQuoted(t *testing.T) {
	const begins = "eyJhbGciOi"
	token := begins + strings.Repeat("k9Zq", 200)
	for name, echo := range map[string]func(w http.ResponseWriter, sent string){
		"text":   func(w http.ResponseWriter, sent string) { http.Error(w, "bad header: "+sent, 400) },
		"a page": func(w http.ResponseWriter, sent string) { answer(502, "text/html", "<title>"+sent+"</title>")(w, nil) },
		"half a JSON": func(w http.ResponseWriter, sent string) {
			answer(400, jsonType, `{"kind":"Status","message":"`+sent)(w, nil)
		},
		"no object": func(w http.ResponseWriter, sent string) { answer(200, "text/plain", sent)(w, nil) },
		"cut by us": func(w http.ResponseWriter, sent string) {
			answer(200, "text/plain", strings.Repeat(" ", 4000)+sent)(w, nil)
		},
		"cut by them":  func(w http.ResponseWriter, sent string) { http.Error(w, sent[:100], 400) },
		"a little":     func(w http.ResponseWriter, sent string) { http.Error(w, sent[:len("Bearer ")+5], 400) },
		"quoted by Go": func(w http.ResponseWriter, sent string) { http.Error(w, fmt.Sprintf("%q", sent), 400) },
	} {
		for _, suffix := range []string{"", `"<&>"`} {
			t.Run(name+suffix, func(t *testing.T) {
				cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) { echo(w, r.Header.Get("Authorization")) })
				cfg.BearerToken = apiclient.NewSecret(token + suffix)
				_, err := pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
				require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), begins)
				if name != "half a JSON" { // it has nothing to quote
					require.ErrorContains(t, err, "REDACTED")
				}
			})
		}
	}
}

// TestAPasswordThatIsAWord checks that errors keep their reason if a password is a word in it.
func TestAPasswordThatIsAWord(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			answer(200, jsonType, `{"type":"ERROR","object":`+gone+`}`)(w, r)
			return
		}
		answer(410, jsonType, gone)(w, r)
	})
	cfg.Username, cfg.Password = "joe", apiclient.NewSecret("resource")
	pods := pods(t, cfg)
	_, err := pods.Get(t.Context(), web, metav1.GetOptions{})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.ErrorContains(t, err, "too old REDACTED version")
	for _, err := range pods.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.ErrorContains(t, err, "too old REDACTED version")
	}
}
