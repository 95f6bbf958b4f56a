package listerwatchertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Protobuf makes a JSON server of pods look like a protobuf server. It rewrites the answers to lists and watches if the
// client prefers protobuf. It rewrites each frame of a watch as it arrives.
func Protobuf(next http.RoundTripper) http.RoundTripper { return &transcoder{next: next} }

type transcoder struct{ next http.RoundTripper }

// CloseIdleConnections closes those of the wrapped transport.
func (x *transcoder) CloseIdleConnections() {
	if c, ok := x.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends the request and rewrites the answer.
func (x *transcoder) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(req.Header.Get("Accept"), codec.MediaTypeProtobuf) {
		return nil, fmt.Errorf("listerwatchertest: the client does not ask for protobuf: %q", req.Header.Get("Accept"))
	}
	resp, err := x.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	resp.Header.Set("Content-Type", codec.MediaTypeProtobuf)
	if req.URL.Query().Has("watch") {
		resp.Header.Set("Content-Type", codec.MediaTypeProtobuf+";stream=watch")
		resp.Body = &frames{body: resp.Body, events: json.NewDecoder(resp.Body)}
		return resp, nil
	}
	if err := rewriteList(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

func rewriteList(resp *http.Response) error {
	defer resp.Body.Close()
	var list corev1.PodList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return err
	}
	b, err := codec.Marshal(&list, codec.MediaTypeProtobuf, api.Resource{Version: "v1", Kind: "PodList", Plural: "pods"})
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return err
}

// frames rewrites the frames of a watch, one at a time.
type frames struct {
	body   io.ReadCloser
	events *json.Decoder
	rest   []byte // of the current frame
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		var event metav1.WatchEvent
		if err := f.events.Decode(&event); err != nil {
			return 0, err
		}
		var err error
		if f.rest, err = rewrite(event); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *frames) Close() error { return f.body.Close() }

// rewrite returns one event in protobuf, after its length.
func rewrite(event metav1.WatchEvent) ([]byte, error) {
	var object any = &corev1.Pod{}
	resource := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods"}
	if event.Type == string(watch.Error) {
		object, resource.Kind = &metav1.Status{}, "Status"
	}
	if err := json.Unmarshal(event.Object.Raw, object); err != nil {
		return nil, err
	}
	raw, err := codec.Marshal(object, codec.MediaTypeProtobuf, resource)
	if err != nil {
		return nil, err
	}
	event.Object = runtime.RawExtension{Raw: raw}
	frame, err := event.Marshal()
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...), nil
}
