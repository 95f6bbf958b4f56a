package testserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var (
	pods       = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	crds       = api.Resource{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions"}
	mills      = api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
)

const (
	podsPath = "/api/v1/namespaces/default/pods"
	mapsPath = "/api/v1/namespaces/default/configmaps"
)

type doc = map[string]any

// bench is a running server with a client.
type bench struct {
	*testing.T
	*testserver.Server
	client *http.Client
	open   []io.Closer // what release closes at the end
}

// inBubble runs test with a server in a synctest bubble. The bubble fails if a goroutine is still running at the end.
func inBubble(t *testing.T, o testserver.Options, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.New(o)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- srv.Run(ctx) }()
		b := &bench{T: t, Server: srv, client: srv.Client()}
		defer func() { // also after a failure; otherwise the error of the bubble would hide it
			cancel()
			require.NoError(t, <-done)
			b.release()
		}()
		test(b)
	})
}

// release closes the answers that were not read to their end, because net/http keeps goroutines for them.
func (b *bench) release() {
	for _, c := range b.open {
		_ = c.Close() // it may already be closed
	}
}

// answer is a whole HTTP answer.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a answer) json(t *testing.T) doc {
	t.Helper()
	var out doc
	require.NoError(t, utiljson.Unmarshal(a.body, &out), "%s", a.body) // integers become int64
	return out
}

func (a answer) status(t *testing.T) metav1.Status {
	t.Helper()
	var out metav1.Status
	require.NoError(t, json.Unmarshal(a.body, &out), "%s", a.body)
	require.Equal(t, "Status", out.Kind, "%s", a.body)
	return out
}

// request creates a request. body may be nil, a string, or a value that encodes to JSON. headers are pairs of name and
// value.
func (b *bench) request(method, path string, body any, headers ...string) *http.Request {
	b.Helper()
	var in io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(v)
	default:
		encoded := must.Get(json.Marshal(v))(b)
		in = bytes.NewReader(encoded)
	}
	r := must.Get(http.NewRequest(method, b.URL()+path, in))(b)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (b *bench) do(method, path string, body any, headers ...string) answer {
	b.Helper()
	res := must.Get(b.client.Do(b.request(method, path, body, headers...)))(b)
	defer res.Body.Close()
	out := must.Get(io.ReadAll(res.Body))(b)
	return answer{code: res.StatusCode, header: res.Header, body: out}
}

// ok sends a request that must succeed, and returns the object.
func (b *bench) ok(method, path string, body any, headers ...string) *unstructured.Unstructured {
	b.Helper()
	a := b.do(method, path, body, headers...)
	require.Less(b, a.code, 300, "%s %s: %s", method, path, a.body)
	return &unstructured.Unstructured{Object: a.json(b.T)}
}

// refused sends a request that must fail, and returns the Status.
func (b *bench) refused(code int, method, path string, body any, headers ...string) metav1.Status {
	b.Helper()
	a := b.do(method, path, body, headers...)
	require.Equal(b, code, a.code, "%s %s: %s", method, path, a.body)
	status := a.status(b.T)
	require.EqualValues(b, code, status.Code)
	require.Equal(b, metav1.StatusFailure, status.Status)
	return status
}

// list is the answer to a list.
type list struct {
	Kind       string
	APIVersion string
	Metadata   metav1.ListMeta
	Items      []doc
}

func (l list) names() []string {
	out := []string{}
	for _, item := range l.Items {
		meta := item["metadata"].(doc)
		out = append(out, meta["name"].(string))
	}
	return out
}

func (b *bench) list(path string, query ...string) list {
	b.Helper()
	a := b.do(http.MethodGet, path+queryOf(query...), nil)
	require.Equal(b, http.StatusOK, a.code, "%s", a.body)
	var out list
	require.NoError(b, json.Unmarshal(a.body, &out), "%s", a.body)
	return out
}

// queryOf encodes "name=value" pairs as a query.
func queryOf(pairs ...string) string {
	if len(pairs) == 0 {
		return ""
	}
	q := url.Values{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		q.Set(name, value)
	}
	return "?" + q.Encode()
}

// stream is an open watch.
type stream struct {
	*bench
	res   *http.Response
	lines *bufio.Reader
}

func (b *bench) watch(path string, query ...string) *stream {
	b.Helper()
	return b.watchAs("application/json", path, query...)
}

func (b *bench) watchAs(accept, path string, query ...string) *stream {
	b.Helper()
	res := must.Get(b.client.Do(b.request(http.MethodGet, path+queryOf(append(query, "watch=true")...), nil, "Accept", accept)))(b)
	b.open = append(b.open, res.Body)
	require.Equal(b, http.StatusOK, res.StatusCode)
	return newStream(b, res)
}

func newStream(b *bench, res *http.Response) *stream {
	return &stream{bench: b, res: res, lines: bufio.NewReader(res.Body)}
}

// event is a frame of a watch.
type event struct {
	Type   string
	Object doc
}

// String formats an event as "ADDED a@101".
func (e event) String() string {
	if e.Type == "ERROR" {
		return fmt.Sprintf("ERROR %v %v", e.Object["code"], e.Object["reason"])
	}
	meta, _ := e.Object["metadata"].(doc)
	name := ""
	if n, ok := meta["name"].(string); ok {
		name = " " + n
	}
	end := ""
	if a, ok := meta["annotations"].(doc); ok && a[metav1.InitialEventsAnnotationKey] == "true" {
		end = " end"
	}
	return fmt.Sprintf("%s%s@%v%s", e.Type, name, meta["resourceVersion"], end)
}

// next blocks until the next event arrives.
func (s *stream) next() (event, error) {
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return event{}, fmt.Errorf("after %q: %w", line, err)
	}
	var e event
	return e, json.Unmarshal(line, &e)
}

// expect reads as many events as there are in want, and compares them.
func (s *stream) expect(want ...string) {
	s.Helper()
	for _, w := range want {
		e, err := s.next()
		require.NoError(s, err, "waiting for %s", w)
		require.Equal(s, w, e.String())
	}
}

// expectEnd requires that the stream ends normally.
func (s *stream) expectEnd() {
	s.Helper()
	e, err := s.next()
	require.ErrorIs(s, err, io.EOF, "instead of the end came %s", e)
}

func (s *stream) close() { s.res.Body.Close() }

func pod(name string, labels ...string) doc {
	meta := doc{"name": name, "namespace": "default"}
	if len(labels) > 0 {
		meta["labels"] = pairs(labels)
	}
	return doc{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": doc{"containers": []any{doc{"name": "c", "image": "i"}}}}
}

func configMap(name string, data ...string) doc {
	return doc{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": doc{"name": name, "namespace": "default"}, "data": pairs(data),
	}
}

// custom returns an object of a kind of leat.example. members are pairs of name and value.
func custom(kind, name string, members ...any) doc {
	out := doc{"apiVersion": "leat.example/v1", "kind": kind, "metadata": doc{"name": name}}
	for i := 0; i < len(members); i += 2 {
		out[members[i].(string)] = members[i+1]
	}
	return out
}

func pairs(list []string) doc {
	out := doc{}
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = list[i+1]
	}
	return out
}
