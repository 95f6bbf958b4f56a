package restconfig_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/adapter/clientgo/restconfig"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	pods   = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	podKey = api.Key{Namespace: "default", Name: "web"}
)

// recorder answers every request with a pod, and keeps the last request.
type recorder struct{ last *http.Request }

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.last = q
	header := http.Header{"Content-Type": {"application/json"}, "Warning": {`299 - "pods are old"`}}
	body := `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","uid":"1","resourceVersion":"7"}}`
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: q}, nil
}

// get sends one request as c says and returns it as it was sent.
func get(t *testing.T, c *rest.Config) *http.Request {
	t.Helper()
	r := &recorder{}
	c.Transport = r
	client := must.Get(restconfig.NewClient(c))(t)
	pod := must.Get(apiclient.NewTyped[*corev1.Pod](client, pods, "").Get(t.Context(), podKey, metav1.GetOptions{}))(t)
	require.Equal(t, "web", pod.Name)
	return r.last
}

func TestCredentials(t *testing.T) {
	q := get(t, &rest.Config{Host: "http://example.com:6443/k8s", BearerToken: "secret", UserAgent: "mill/1", Impersonate: rest.ImpersonationConfig{
		UserName: "miller", Groups: []string{"mills"}, Extra: map[string][]string{"reason": {"flour"}},
	}})
	require.Equal(t, "http://example.com:6443/k8s/api/v1/namespaces/default/pods/web", q.URL.String())
	require.Equal(t, "Bearer secret", q.Header.Get("Authorization"))
	require.Equal(t, "mill/1", q.Header.Get("User-Agent"))
	require.Equal(t, "miller", q.Header.Get("Impersonate-User"))
	require.Equal(t, "mills", q.Header.Get("Impersonate-Group"))
	require.Equal(t, "flour", q.Header.Get("Impersonate-Extra-Reason"))

	q = get(t, &rest.Config{Username: "miller", Password: "secret"})
	require.Equal(t, "http://localhost/api/v1/namespaces/default/pods/web", q.URL.String())
	user, password, _ := q.BasicAuth()
	require.Equal(t, "miller:secret", user+":"+password)
	require.Equal(t, rest.DefaultKubernetesUserAgent(), q.Header.Get("User-Agent"))
}

func TestWrappersSeeRequests(t *testing.T) {
	c := &rest.Config{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			q = q.Clone(q.Context())
			q.Header.Set("Traceparent", "00-1")
			return next.RoundTrip(q)
		})
	})
	require.Equal(t, "00-1", get(t, c).Header.Get("Traceparent"))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func TestContentTypes(t *testing.T) {
	for _, c := range []struct {
		config rest.ContentConfig
		json   bool
	}{
		{rest.ContentConfig{}, false},
		{rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}, false},
		{rest.ContentConfig{ContentType: "application/json"}, true},
		{rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"}, false},
		{rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/json; charset=utf-8"}, true},
	} {
		accept := get(t, &rest.Config{ContentConfig: c.config}).Header.Get("Accept")
		require.Equal(t, c.json, !strings.Contains(accept, "protobuf"), "%+v: %s", c.config, accept)
	}
}

// limiter counts its calls.
type limiter struct{ waits int }

func (l *limiter) TryAccept() bool            { return true }
func (l *limiter) Accept()                    { l.waits++ }
func (l *limiter) Stop()                      {}
func (l *limiter) QPS() float32               { return 1 }
func (l *limiter) Wait(context.Context) error { l.waits++; return nil }

func TestLimits(t *testing.T) {
	l := &limiter{}
	get(t, &rest.Config{RateLimiter: l, QPS: -1})
	require.Equal(t, 1, l.waits)

	c := must.Get(restconfig.Config(&rest.Config{QPS: -1, Timeout: time.Minute}))(t)
	require.Nil(t, c.Limiter)
	require.Equal(t, time.Minute, c.ResponseHeaderTimeout)

	c = must.Get(restconfig.Config(&rest.Config{QPS: 0.001, Burst: 2}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		require.NoError(t, c.Limiter.Wait(ctx))
	}
	require.Error(t, c.Limiter.Wait(ctx), "the third request is beyond the burst")

	c = must.Get(restconfig.Config(&rest.Config{}))(t)
	require.NotNil(t, c.Limiter, "client-go limits by default")
}

// warnings keeps what it gets.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	*w = append(*w, "context: "+text)
}

func TestWarnings(t *testing.T) {
	w := &warnings{}
	get(t, &rest.Config{WarningHandler: w})
	get(t, &rest.Config{WarningHandler: w, WarningHandlerWithContext: w})
	get(t, &rest.Config{})
	require.Equal(t, warnings{"pods are old", "context: pods are old"}, *w)
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]*rest.Config{
		"rest.Config is nil": nil,
		"application/cbor":   {ContentConfig: rest.ContentConfig{ContentType: "application/cbor"}},
		"ContentConfig":      {ContentConfig: rest.ContentConfig{AcceptContentTypes: "a b c"}},
		"Host":               {Host: "http://exa mple"},
		"no-such-file":       {Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "no-such-file")}},
	} {
		_, err := restconfig.Config(c)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "restconfig: ")
		require.Error(t, must.Err(restconfig.NewClient(c)))
	}
}

func TestTheConfigStaysAsItIs(t *testing.T) {
	c := &rest.Config{Host: "example.com", APIPath: "/api", ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion}}
	before := rest.CopyConfig(c)
	config := must.Get(restconfig.Config(c))(t)
	require.Equal(t, "http://example.com", strings.TrimSuffix(config.Host, "/"))
	require.Equal(t, before, c)
}
