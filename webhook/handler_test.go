package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/webhook"
)

// allowAll is a webhook that only answers.
func allowAll() webhook.Webhook {
	return webhook.Admission[*mill]{Resource: mills, Validate: webhook.ValidateFunc[*mill](func(context.Context, *mill) ([]string, error) { return nil, nil })}
}

func TestBadRequestsGetAClearAnswer(t *testing.T) {
	create := review(`"operation":"CREATE","object":` + object(""))
	edit := func(old, now string) string { return strings.Replace(create, old, now, 1) }
	for name, c := range map[string]struct {
		method, path, media, body string
		code                      int
		text                      string
	}{
		"another path":      {path: "/other", code: 404, text: `there is no webhook at the path "/other"`},
		"a GET":             {method: "GET", code: 405, text: "a webhook accepts only POST, not GET"},
		"another type":      {media: "application/vnd.kubernetes.protobuf", code: 415, text: `the content type is "application/vnd.kubernetes.protobuf", and a webhook accepts only application/json`},
		"no type":           {media: "-", code: 415, text: `the content type is "", and a webhook accepts only application/json`},
		"no duration":       {path: "/validate?timeout=soon", code: 400, text: `the query parameter timeout is "soon", which is not a positive duration`},
		"no time":           {path: "/validate?timeout=0s", code: 400, text: `the query parameter timeout is "0s", which is not a positive duration`},
		"too large":         {body: edit(`"low"`, `"`+strings.Repeat("w", 2000)+`"`), code: 413, text: "the body has more than 2000 bytes, which is the limit of this webhook"},
		"no body":           {body: " ", code: 400, text: "the body is not AdmissionReview in JSON: "},
		"half a body":       {body: create[:len(create)-1], code: 400, text: "it ends too early"},
		"a list":            {body: "[]", code: 400, text: "'[' where an object should be"},
		"v1beta1":           {body: edit("k8s.io/v1", "k8s.io/v1beta1"), code: 400, text: "the body is admission.k8s.io/v1beta1 AdmissionReview, and this webhook supports only admission.k8s.io/v1 AdmissionReview; correct the versions in the webhook's configuration"},
		"another review":    {body: edit("AdmissionReview", "ConversionReview"), code: 400, text: "the body is admission.k8s.io/v1 ConversionReview, and this"},
		"no kind":           {body: "{}", code: 400, text: "the body is of an unknown kind, and this webhook supports only"},
		"no request":        {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, code: 400, text: "the AdmissionReview has no request with a uid"},
		"no uid":            {body: edit("u1", ""), code: 400, text: "the AdmissionReview has no request with a uid"},
		"another version":   {body: edit(`"version":"v1"`, `"version":"v2"`), code: 400, text: "this webhook is for mills.example/v1 Mill, and the review is about mills.example/v2 Mill; correct the rules"},
		"another kind":      {body: edit(`"kind":"Mill"}`, `"kind":"Bakery"}`), code: 400, text: "and the review is about mills.example/v1 Bakery; correct the rules"},
		"a connection":      {body: edit("CREATE", "CONNECT"), code: 400, text: `this webhook does not support the operation "CONNECT"`},
		"no operation":      {body: edit("CREATE", ""), code: 400, text: `this webhook does not support the operation ""`},
		"a very long value": {body: edit("CREATE", strings.Repeat("C", 1000)), code: 400, text: `CCC…"; correct`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, webhook.Options{Limits: webhook.Limits{MaxAdmissionBytes: 2000}})
			r.Handle("/validate", allowAll())
			method, path, media, body := c.method, c.path, c.media, c.body
			if method == "" {
				method = http.MethodPost
			}
			if path == "" {
				path = "/validate"
			}
			if body == "" {
				body = create
			}
			request := httptest.NewRequest(method, path, strings.NewReader(body))
			if media == "" {
				media = "application/json; charset=utf-8"
			}
			if media != "-" {
				request.Header.Set("Content-Type", media)
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, request)
			require.Equal(t, c.code, w.Code, "%s", w.Body)
			status := failureOf(t, w)
			require.Contains(t, status.Message, c.text)
			require.Less(t, len(status.Message), 1100)
			require.NotEmpty(t, status.Reason)
			require.Len(t, r.refusals(), 1)
			require.Contains(t, r.refusals()[0], c.text, "the log has it too")
			if c.code != http.StatusNotFound {
				require.Equal(t, []int{c.code}, r.count.codes)
			}
		})
	}
}

func TestPanicsAreContained(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/panic", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](func(context.Context, *mill) error { panic("secret") })})
	r.Handle("/validate", allowAll())
	create := review(`"operation":"CREATE","object":` + object(""))
	w := r.post("/panic", create)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "the webhook panicked; its log has the reason", failureOf(t, w).Message)
	logged := r.logs.FilterLevelExact(zapcore.ErrorLevel).All()
	require.Len(t, logged, 1)
	require.Equal(t, "panic: secret [recovered]", logged[0].ContextMap()["err"])
	require.Contains(t, logged[0].ContextMap()["stack"], "TestPanicsAreContained")
	require.Equal(t, 1, r.count.panics)
	require.Equal(t, http.StatusOK, r.post("/validate", create).Code, "the server continues")
	require.Equal(t, []int{500, 200}, r.count.codes)
}

// TestDeadlines checks the time that the webhook has, with and without the parameter of the API server.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		query string
		limit time.Duration // of the options
		want  time.Duration
	}{
		{"", 0, 10 * time.Second},
		{"", 3 * time.Second, 3 * time.Second},
		{"?timeout=10s", 0, 9 * time.Second},
		{"?timeout=1s", 0, 900 * time.Millisecond},
		{"?timeout=30s", 0, 29 * time.Second},
		{"?timeout=10h", 0, 30 * time.Second},
		{"?timeout=10s", 3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, webhook.Options{Limits: webhook.Limits{Timeout: c.limit}})
			r.Handle("/slow", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](func(ctx context.Context, _ *mill) error {
				<-ctx.Done()
				return ctx.Err()
			})})
			w := r.post("/slow"+c.query, review(`"operation":"CREATE","object":`+object("")))
			require.Equal(t, http.StatusGatewayTimeout, w.Code)
			require.Equal(t, metav1.StatusReasonTimeout, failureOf(t, w).Reason)
			require.Equal(t, []time.Duration{c.want}, r.count.took, c.query)
		})
	}
}

// TestRequestsWaitForAFreeSlot checks the limit of concurrent requests.
func TestRequestsWaitForAFreeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, webhook.Options{Limits: webhook.Limits{MaxRequests: 1, Timeout: 3 * time.Second}})
		r.Handle("/slow", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](func(ctx context.Context, _ *mill) error {
			<-time.After(2 * time.Second)
			return nil
		})})
		create := review(`"operation":"CREATE","object":` + object(""))
		codes := make(chan int, 3)
		for range 3 {
			go func() { codes <- r.post("/slow", create).Code }()
		}
		var got []int
		for range 3 {
			got = append(got, <-codes)
		}
		require.Equal(t, []int{200, 429, 200}, got, "the second slot is free after 2 s, the third after 4 s")
	})
}

// TestSlowBodiesOccupyNoSlot has a request whose body does not end. Another request is answered, although only one
// webhook is called at once. What the first body has taken of the memory is missing until its request ends.
func TestSlowBodiesOccupyNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		create := review(`"operation":"CREATE","object":` + object(""))
		large := int64(len(create) + 200)
		r := newRig(t, webhook.Options{Limits: webhook.Limits{MaxRequests: 1, MaxAdmissionBytes: large, MaxConversionBytes: 1}})
		r.Handle("/validate", allowAll())
		body, rest := io.Pipe()
		slow := make(chan int, 1)
		go func() {
			request := httptest.NewRequest(http.MethodPost, "/validate", body)
			request.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			r.ServeHTTP(w, request)
			slow <- w.Code
		}()
		send := func(text string) {
			_, err := rest.Write([]byte(text))
			require.NoError(t, err)
			synctest.Wait()
		}
		send(create[:100])
		require.Equal(t, http.StatusOK, r.post("/validate", create).Code)
		send(create[100:300])
		w := r.post("/validate", create)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "the bodies of other requests have reached the limit of the webhook", failureOf(t, w).Message)
		send(create[300:])
		require.NoError(t, rest.Close())
		require.Equal(t, http.StatusOK, <-slow)
		require.Equal(t, http.StatusOK, r.post("/validate", create).Code, "the memory is free again")
	})
}

// failingReader is a body whose connection breaks.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

func TestABodyThatBreaksOff(t *testing.T) {
	r := newRig(t, webhook.Options{})
	r.Handle("/validate", allowAll())
	request := httptest.NewRequest(http.MethodPost, "/validate", io.MultiReader(strings.NewReader("{"), failingReader{}))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	require.Equal(t, "cannot read the body: the connection broke", failureOf(t, w).Message)
}

// FuzzBodies posts anything. Every answer is a review or a Status, and nothing panics.
func FuzzBodies(f *testing.F) {
	create := review(`"operation":"CREATE","object":` + object(`,"stones":3`))
	for _, seed := range []string{
		create, review(`"operation":"UPDATE","object":` + object("") + `,"oldObject":` + object("")), review(`"operation":"DELETE","oldObject":{}`),
		strings.ReplaceAll(create, "v1", "v1beta1"), "", "{}", "null", `{"request":null}`, create[:100], strings.ReplaceAll(create, `"`, `'`),
		strings.Replace(create, "Mill", "Mi\x00ll", 1), review(`"operation":"CREATE","object":[[[[`), review(`"operation":"CREATE","object":{"metadata":null,"spec":{"stones":1e400}}`),
		conversion("v1", millAt("v1alpha1", `"stones":1`)), conversion("v1alpha1", millAt("v1", `"stones":1`)), conversion("v9", `7`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := newRig(t, webhook.Options{})
		r.Handle("/both", webhook.Admission[*mill]{Default: webhook.DefaultFunc[*mill](twoStones), Validate: webhook.ValidateFunc[*mill](
			func(context.Context, *mill) ([]string, error) { return []string{"w"}, nil },
		)})
		r.Handle("/convert", converter())
		for _, path := range []string{"/both", "/convert"} {
			w := r.post(path, body)
			var answer struct {
				Kind     string
				Response *struct {
					UID   string
					Patch []byte
				}
			}
			require.NoError(t, json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&answer))
			switch w.Code {
			case http.StatusOK:
				require.NotEmpty(t, answer.Response.UID)
				require.Contains(t, answer.Kind, "Review")
			case http.StatusBadRequest:
				require.Equal(t, "Status", answer.Kind)
			default:
				t.Fatalf("code %d for %q: %s", w.Code, body, w.Body)
			}
		}
		require.Zero(t, r.count.panics+r.count.conversionPanics)
	})
}
