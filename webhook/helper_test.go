package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/webhook"
)

// mill is a custom resource. It declares only a part of the fields.
type mill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Stones int    `json:"stones,omitempty"`
		Grain  string `json:"grain,omitempty"`
	} `json:"spec"`
}

var mills = api.Resource{Group: "mills.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}

// rig is a server with its log and its observer.
type rig struct {
	*webhook.Server
	logs  *observer.ObservedLogs
	count *counts
}

func newRig(t *testing.T, o webhook.Options) rig {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	r := rig{logs: logs, count: &counts{}}
	o.Logger, o.Observer = zap.New(core), r.count
	if o.Certificates == nil && o.CertFile == "" {
		o.CertFile, o.KeyFile = "unused", "unused"
	}
	r.Server = must.Get(webhook.New(o))(t)
	return r
}

// post sends a body and returns the answer.
func (r rig) post(path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	return w
}

// refusals returns the entries about refused requests.
func (r rig) refusals() []string {
	var all []string
	for _, e := range r.logs.FilterLevelExact(zapcore.WarnLevel).All() {
		all = append(all, fmt.Sprintf("%v: %v", e.ContextMap()["code"], e.ContextMap()["err"]))
	}
	return all
}

// response is the part of an AdmissionReview that tests look at.
type response struct {
	UID       string
	Allowed   bool
	Status    *metav1.Status
	Patch     []byte
	PatchType string
	Warnings  []string
}

// admit posts a request and returns the response of a review.
func (r rig) admit(t *testing.T, path, request string) response {
	t.Helper()
	w := r.post(path, review(request))
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	var answer struct {
		metav1.TypeMeta
		Response response
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, answer.TypeMeta)
	require.Equal(t, "u1", answer.Response.UID)
	return answer.Response
}

// review wraps a request about a mill.
func review(request string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",
		"kind":{"group":"mills.example","version":"v1","kind":"Mill"},"name":"north","namespace":"valley",` + request + `}}`
}

// object is a mill in JSON with a field that the type does not declare.
func object(spec string) string {
	return `{"apiVersion":"mills.example/v1","kind":"Mill","metadata":{"name":"north","namespace":"valley","uid":"m1"},
		"spec":{"water":"low"` + spec + `}}`
}

// failureOf returns the Status of an answer without a review.
func failureOf(t *testing.T, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, s.TypeMeta)
	require.EqualValues(t, w.Code, s.Code)
	require.Equal(t, metav1.StatusFailure, s.Status)
	return s
}

// validate is a Validator of functions.
type validate struct {
	create func(ctx context.Context, m *mill) ([]string, error)
	update func(ctx context.Context, old, m *mill) ([]string, error)
	remove func(ctx context.Context, m *mill) ([]string, error)
}

func (v validate) ValidateCreate(ctx context.Context, m *mill) ([]string, error) {
	return v.create(ctx, m)
}

func (v validate) ValidateUpdate(ctx context.Context, old, m *mill) ([]string, error) {
	return v.update(ctx, old, m)
}

func (v validate) ValidateDelete(ctx context.Context, m *mill) ([]string, error) {
	return v.remove(ctx, m)
}

// counts is an Observer that records its calls.
type counts struct {
	mu                       sync.Mutex
	added                    []string
	started                  int
	codes                    []int
	took                     []time.Duration
	panics, conversionPanics int
	reads                    []error
}

func (c *counts) WebhookAdded(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.added = append(c.added, path)
}

func (c *counts) WebhookStarted(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
}

func (c *counts) WebhookEnded(_ string, code int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes, c.took = append(c.codes, code), append(c.took, took)
}

func (c *counts) WebhookPanicked(conversion bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conversion {
		c.conversionPanics++
	} else {
		c.panics++
	}
}

func (c *counts) CertificateRead(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, err)
}
