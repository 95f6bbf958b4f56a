package recording_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
)

var (
	pods    = fixture.Pods
	secrets = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	maps    = fixture.ConfigMaps
)

const token = "a-bearer-token-of-the-test"

// rig is a server, a recorder and a client of both, in a bubble.
type rig struct {
	*fixture.Fixture
	recorder *recording.Recorder
	client   *apiclient.Client
	file     *bytes.Buffer
}

// record runs f in a bubble, and returns the recording.
func record(t *testing.T, so testserver.Options, o recording.Options, f func(*rig)) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	so.Tokens = testserver.Tokens{token: "admin"}
	fixture.Run(t, so, func(t *testing.T, x *fixture.Fixture) {
		r := &rig{Fixture: x, recorder: must.Get(recording.New(&file, o))(t), file: &file}
		stop := r.Start(r.recorder.Run)
		r.client = must.Get(apiclient.New(apiclient.Config{
			Host: r.Server.URL(), BearerToken: apiclient.NewSecret(token), WrapTransport: r.recorder.Wrap,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Server.Dial(ctx) },
		}))(t)
		f(r)
		stop() // before the informers end
	})
	return &file
}

// pause lets fake time pass.
func pause(d time.Duration) { <-time.After(d) }

// follow runs an informer of a resource until the rig ends.
func follow[T api.Object](r *rig, resource api.Resource, o informer.Options[T]) *informer.Informer[T] {
	i := informer.New(apiclient.NewTyped[T](r.client, resource, ""), o)
	r.Start(i.Run)
	synctest.Wait()
	require.True(r, i.Status().Synced)
	return i
}

func opened(t *testing.T, file *bytes.Buffer) *recording.Reader {
	t.Helper()
	r := must.Get(recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
	require.True(t, r.Complete())
	require.Empty(t, r.Problems())
	return r
}

// payloads returns the bytes of a file and what its blocks have.
func payloads(file *bytes.Buffer) string { return file.String() + recording.Payloads(file.Bytes()) }

// text returns the data of all streams of a resource.
func text(t *testing.T, file *bytes.Buffer, plural string) string {
	t.Helper()
	var b strings.Builder
	for rec := range opened(t, file).Records(func(s *recording.Stream) bool { return s.Plural == plural }) {
		b.Write(rec.Data)
	}
	return b.String()
}

// TestATapRecordsWhatTheClientReads records an informer that lists and watches, in JSON and in protobuf, also
// compressed. The bytes are those that the client got, in whole frames.
func TestATapRecordsWhatTheClientReads(t *testing.T) {
	file := record(t, testserver.Options{Compress: true}, recording.Options{}, func(r *rig) {
		for i := range 300 {
			r.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "first-" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Namespace: "default",
				Annotations: map[string]string{"text": strings.Repeat("long ", 100)},
			}})
		}
		o := informer.Options[*corev1.Pod]{}
		o.Tuning.NoWatchList = true
		follow(r, pods, o)
		pause(time.Minute)
		r.Create(pods, &corev1.Pod{ObjectMeta: fixture.Meta("default", "web")})
		synctest.Wait()
		require.NotZero(t, r.recorder.Stats().Bytes)
	})
	r := opened(t, file)
	streams := r.Streams()
	require.GreaterOrEqual(t, len(streams), 2)
	require.False(t, streams[0].Watch)
	require.Equal(t, 200, streams[0].Code)
	require.Equal(t, pods.String(), streams[0].Resource().String())
	last := streams[len(streams)-1]
	require.True(t, last.Watch)
	require.NotEmpty(t, last.Options["resourceVersion"])
	var listed, watched bytes.Buffer
	for rec := range r.Records(nil) {
		switch {
		case rec.Stream.ID == streams[0].ID:
			listed.Write(rec.Data)
		case rec.Kind == recording.Data:
			require.True(t, bytes.HasSuffix(rec.Data, []byte("\n")), "a whole frame")
			watched.Write(rec.Data)
		}
	}
	var list corev1.PodList
	require.NoError(t, json.Unmarshal(listed.Bytes(), &list))
	require.Len(t, list.Items, 300)
	require.Contains(t, watched.String(), `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"`)
	require.NotContains(t, payloads(file), token)
}

// TestNothingSecretIsWritten records Secrets and redacted fields, and searches for their values.
func TestNothingSecretIsWritten(t *testing.T) {
	const private, other, plainText = "correct horse", "battery staple", "not a secret at all"
	key := []byte("a key that both recordings share")
	var files [2]*bytes.Buffer
	for i := range files {
		files[i] = record(t, testserver.Options{}, recording.Options{
			Key: key, Redact: []recording.Redaction{
				{Resource: "configmaps", Path: "data['private.key']"}, {Resource: "pods", Path: "spec.containers[*].env.value"},
			},
		}, func(r *rig) {
			create := func(name, value string) {
				r.Create(secrets, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{
						"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + value + `"}}`,
					}},
					Data: map[string][]byte{"password": []byte(value), "empty": {}},
				})
			}
			create("first", private)
			create("same", private)
			r.Create(maps, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default", Annotations: map[string]string{
					"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"private.key":"` + private + `"}}`,
				}},
				Data: map[string]string{"private.key": private, "public": plainText},
			})
			r.Create(pods, &corev1.Pod{
				ObjectMeta: fixture.Meta("default", "web"),
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "a", Image: plainText, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: private}}},
				}},
			})
			follow(r, secrets, informer.Options[*corev1.Secret]{})
			follow(r, maps, informer.Options[*corev1.ConfigMap]{})
			follow(r, pods, informer.Options[*corev1.Pod]{})
			pause(time.Second)
			create("later", other)
			synctest.Wait()
		})
	}
	for _, file := range files {
		for _, value := range []string{private, other, token} {
			require.NotContains(t, payloads(file), value)
			require.NotContains(t, payloads(file), base64.StdEncoding.EncodeToString([]byte(value)))
		}
		require.Contains(t, text(t, file, "configmaps"), plainText)
		require.Contains(t, text(t, file, "pods"), plainText)
		require.Contains(t, text(t, file, "pods"), `"name":"PASSWORD","value":"`+recording.Mark)
	}
	values := map[string]string{}
	for frame := range strings.Lines(text(t, files[0], "secrets")) {
		var e struct{ Object corev1.Secret }
		require.NoError(t, json.Unmarshal([]byte(frame), &e), frame)
		values[e.Object.Name] = string(e.Object.Data["password"])
	}
	require.True(t, strings.HasPrefix(values["first"], "redacted:"), "%q", values["first"])
	require.Equal(t, values["first"], values["same"])
	require.NotEqual(t, values["first"], values["later"])
	timeline := must.Get(recording.Load[*corev1.Secret](t.Context(), opened(t, files[0]), nil))(t)
	require.Len(t, timeline.At(secrets, timeline.Changes()[len(timeline.Changes())-1].Time), 3)
	require.Equal(t, text(t, files[0], "secrets"), text(t, files[1], "secrets"), "the key decides about the hashes")
}

// TestAnAnswerThatCannotBeRedacted has a server that answers in protobuf although JSON is requested. Nothing of the
// answer is written.
func TestAnAnswerThatCannotBeRedacted(t *testing.T) {
	var file bytes.Buffer
	r := must.Get(recording.New(&file, recording.Options{}))(t)
	var accepted string
	rt := r.Wrap(fixture.RoundTripper(func(req *http.Request) (*http.Response, error) {
		accepted = req.Header.Get("Accept")
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}},
			Body: io.NopCloser(strings.NewReader("k8s\x00 private")),
		}, nil
	}))
	req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/secrets?limit=5&access_token=private", nil))(t)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json;q=0.9")
	req.Header.Set("Authorization", "Bearer private")
	resp := must.Get(rt.RoundTrip(req))(t)
	require.Equal(t, "application/json;q=0.9", accepted)
	require.Equal(t, "application/vnd.kubernetes.protobuf,application/json;q=0.9", req.Header.Get("Accept"), "the request is not changed")
	b := must.Get(io.ReadAll(resp.Body))(t)
	require.Equal(t, "k8s\x00 private", string(b), "the client gets the answer")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
	require.ErrorIs(t, r.Run(ctx), recording.ErrStarted)
	require.NotContains(t, payloads(&file), "private")
	streams := opened(t, &file).Streams()
	require.Len(t, streams, 1)
	require.Contains(t, streams[0].Note, "cannot be redacted")
	require.Equal(t, map[string]string{"limit": "5"}, streams[0].Options)
}

// TestOtherRequestsAreNotRecorded sends what is neither a list nor a watch of a collection.
func TestOtherRequestsAreNotRecorded(t *testing.T) {
	r := must.Get(recording.New(io.Discard, recording.Options{}))(t)
	rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}))
	send := func(method, path string) uint64 {
		before := r.Stats().Streams
		req := must.Get(http.NewRequest(method, "https://server"+path, nil))(t)
		must.Get(rt.RoundTrip(req))(t)
		return r.Stats().Streams - before
	}
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces", "/api/v1/namespaces/shop/pods", "/apis/apps/v1/deployments",
		"/apis/apps/v1/namespaces/shop/deployments?watch=true", "/k8s/clusters/c1/api/v1/pods",
	} {
		require.EqualValues(t, 1, send(http.MethodGet, path), path)
		require.Zero(t, send(http.MethodPost, path), path)
	}
	for _, path := range []string{
		"/", "/api", "/api/v1", "/apis/apps/v1", "/healthz", "/api/v1/namespaces/shop", "/api/v1/namespaces/shop/status",
		"/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/shop/pods/web/log", "/apis/apps/v1/deployments/a/b/c/d",
	} {
		require.Zero(t, send(http.MethodGet, path), path)
	}
}

// TestAFullBacklog has a disk that does not write. Without Wait the stream is lost, and the client reads on. With Wait
// the client waits.
func TestAFullBacklog(t *testing.T) {
	for _, wait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disk := &stuck{free: make(chan struct{})}
			r := must.Get(recording.New(disk, recording.Options{Backlog: 1 << 20, Wait: wait}))(t)
			disk.stuck = true
			stop := fixture.Start(t, r.Run)
			synctest.Wait()
			rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(make([]byte, 10_000_000)))}, nil
			}))
			req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil))(t)
			resp := must.Get(rt.RoundTrip(req))(t)
			read := make(chan int, 1)
			go func() {
				total, p := 0, make([]byte, 4000)
				for {
					n, err := resp.Body.Read(p)
					if total += n; err != nil {
						read <- total
						return
					}
				}
			}()
			pause(time.Minute)
			select {
			case n := <-read:
				require.False(t, wait)
				require.Equal(t, 10_000_000, n)
				disk.release()
			default:
				require.True(t, wait)
				disk.release()
				require.Equal(t, 10_000_000, <-read)
			}
			pause(time.Minute)
			stop()
			require.Equal(t, !wait, r.Stats().Lost == 1)
			records := 0
			var last recording.RecordKind
			for rec := range opened(t, &disk.Buffer).Records(nil) {
				records, last = records+len(rec.Data), rec.Kind
			}
			if wait {
				require.Equal(t, 10_000_000, records)
				require.Equal(t, recording.Ended, last)
			} else {
				require.Less(t, records, 10_000_000)
				require.Equal(t, recording.Lost, last)
			}
		})
	}
}

// stuck is a disk that blocks until release.
type stuck struct {
	bytes.Buffer
	stuck bool
	free  chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.stuck {
		<-s.free
	}
	return s.Buffer.Write(p)
}

func (s *stuck) release() { close(s.free) }

// broken is a disk that fails after the header.
type broken struct{ n int }

func (b *broken) Write(p []byte) (int, error) {
	if b.n++; b.n > 1 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// TestAFullDisk ends the recording, and neither the client nor a program with OnError.
func TestAFullDisk(t *testing.T) {
	for _, reported := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var got error
			core, logs := observer.New(zap.InfoLevel)
			o := recording.Options{Logger: zap.New(core)}
			if reported {
				o.OnError = func(err error) { got = err }
			}
			r := must.Get(recording.New(&broken{}, o))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}))
			req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil))(t)
			for range 3 {
				resp := must.Get(rt.RoundTrip(req))(t)
				b := must.Get(io.ReadAll(resp.Body))(t)
				require.Equal(t, "{}", string(b))
				pause(time.Second)
			}
			const want = "recording: write: no space left"
			synctest.Wait()
			require.Equal(t, 1, logs.FilterMessage("the recording has failed").Len())
			if !reported {
				require.EqualError(t, <-ended, want)
				return
			}
			synctest.Wait()
			require.EqualError(t, got, want)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// TestProtobuf records protobuf in whole frames.
func TestProtobuf(t *testing.T) {
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		var file bytes.Buffer
		r := must.Get(recording.New(&file, recording.Options{}))(t)
		endRecorder := f.Start(r.Run)
		f.Create(pods, &corev1.Pod{ObjectMeta: fixture.Meta("default", "web")})
		client := f.Connect(func(next http.RoundTripper) http.RoundTripper { return r.Wrap(listerwatchertest.Protobuf(next)) })
		i := informer.New(apiclient.NewTyped[*corev1.Pod](client, pods, ""), informer.Options[*corev1.Pod]{})
		endInformer := f.Start(i.Run)
		synctest.Wait()
		require.Equal(t, 1, i.Snapshot().Len())
		endInformer()
		endRecorder()
		require.Equal(t, "application/vnd.kubernetes.protobuf", opened(t, &file).Streams()[0].ContentType)
		require.Contains(t, text(t, &file, "pods"), "k8s\x00")
	})
}

// TestWrongRedactions refuses paths that cannot be paths.
func TestWrongRedactions(t *testing.T) {
	for _, c := range []struct{ resource, path, says string }{
		{"", "data", `redaction of "": the resource is a plural name, such as`},
		{"secrets", "", "it is empty"},
		{"secrets", "a..b", "write it as spec.containers.env.value"},
		{"secrets", "a.", "it ends with a dot"},
		{"secrets", "a['b", "a bracket has no end"},
	} {
		_, err := recording.New(io.Discard, recording.Options{Redact: []recording.Redaction{{Resource: c.resource, Path: c.path}}})
		require.ErrorContains(t, err, c.says)
	}
}
