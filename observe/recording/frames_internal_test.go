package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// pieces is a body that is read in the pieces in which it was sent.
type pieces struct{ rest [][]byte }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; len(p.rest[0]) == 0 {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func (p *pieces) Close() error { return nil }

// recordPieces records answers to watches of pods, one after the other, and returns the file. The client reads half of
// the last one.
func recordPieces(t *testing.T, o Options, contentType string, bodies ...[][]byte) (file []byte, stats Stats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := must.Get(New(&out, o))(t)
		stop := fixture.Start(t, r.Run)
		for i, answer := range bodies {
			rt := r.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: &pieces{slices.Clone(answer)}}, nil
			}))
			req, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods?watch=true", nil)
			require.NoError(t, err)
			resp := must.Get(rt.RoundTrip(req))(t)
			if i < len(bodies)-1 || len(bodies) == 1 {
				_, err = io.Copy(io.Discard, resp.Body)
			} else {
				_, err = io.CopyN(io.Discard, resp.Body, int64(len(bytes.Join(answer, nil))/2))
			}
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			synctest.Wait()
		}
		stop()
		file, stats = out.Bytes(), r.Stats()
	})
	return file, stats
}

// watched are pods that change, as a server sends them.
type watched struct {
	*testing.T
	*rand.Rand
	contentType string
	custom      bool // members are in alphabetical order
	pods        []*corev1.Pod
	version     int
}

func newWatched(t *testing.T, seed uint64, contentType string, custom bool) *watched {
	w := &watched{T: t, Rand: rand.New(rand.NewPCG(seed, 5)), contentType: contentType, custom: custom}
	for i := range 12 {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-", i), Namespace: "shop", UID: types.UID(fmt.Sprintf("11111111-2222-4333-8444-%012d", i)),
			Annotations: map[string]string{}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		}}
		if i > 2 { // otherwise a small one
			for n := range w.IntN(100) {
				pod.Annotations[fmt.Sprint("example.com/", n)] = fmt.Sprintf("%x", w.Uint64())
			}
		}
		w.pods = append(w.pods, pod)
	}
	return w
}

// change changes a pod, and returns the frame.
func (w *watched) change() []byte {
	w.version++
	pod := w.pods[w.IntN(len(w.pods))]
	pod.ResourceVersion = fmt.Sprint(w.version)
	switch w.IntN(6) {
	case 0:
		pod.Annotations[fmt.Sprint("example.com/", w.IntN(100))] = fmt.Sprintf("%x", w.Uint64())
	case 1:
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "Ready", Message: fmt.Sprint(w.Uint64())})
	case 2:
		pod.Status.Conditions = nil
	}
	if w.contentType == typeProtobuf {
		return w.protobuf(pod)
	}
	object := must.Get(json.Marshal(pod))(w)
	if w.custom {
		var members map[string]any
		require.NoError(w, json.Unmarshal(object, &members))
		object = must.Get(json.Marshal(members))(w)
	}
	return fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", object)
}

func (w *watched) protobuf(pod *corev1.Pod) []byte {
	raw := must.Get(pod.Marshal())(w)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
	object := must.Get(unknown.Marshal())(w)
	event := must.Get((&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), object...)}}).Marshal())(w)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

// answer returns frames in random pieces, and all of them.
func (w *watched) answer(frames int) (sent [][]byte, all [][]byte) {
	for range frames {
		all = append(all, w.change())
	}
	most := 1 << (5 + w.IntN(11))
	for rest := bytes.Join(all, nil); len(rest) > 0; {
		n := min(len(rest), 1+w.IntN(most))
		sent, rest = append(sent, rest[:n:n]), rest[n:]
	}
	return sent, all
}

// TestFramesAreRecorded records watches of pods that change. The records are the frames that the client read, and the
// file is smaller than they are. The client closes the last watch inside of a frame.
func TestFramesAreRecorded(t *testing.T) {
	for seed := range uint64(6) {
		w := newWatched(t, seed, []string{typeJSON, typeProtobuf}[seed%2], seed%4 == 0)
		first, firstFrames := w.answer(150)
		last, lastFrames := w.answer(150)
		file, stats := recordPieces(t, Options{}, w.contentType, first, last)
		firstText, lastText := string(bytes.Join(firstFrames, nil)), string(bytes.Join(lastFrames, nil))
		want := firstText + lastText[:len(lastText)/2]
		ends := map[int]bool{}
		size, events := 0, 0
		for _, frame := range append(firstFrames, lastFrames...) {
			size += len(frame)
			ends[size] = true
			if size <= len(want) {
				events++
			}
		}
		var got strings.Builder
		for rec := range reader(t, file).Records(nil) {
			require.False(t, rec.Gap)
			if rec.Kind == Data {
				got.Write(rec.Data)
				require.True(t, ends[got.Len()] || got.Len() == len(want), "a whole frame")
			}
		}
		require.Equal(t, want, got.String())
		require.EqualValues(t, got.Len(), stats.Bytes)
		require.EqualValues(t, events, stats.Events)
		require.Zero(t, stats.Lost)
		require.Less(t, len(file), size*2/3)
	}
}

// TestASmallPieceAtATime records frames that arrive byte by byte.
func TestASmallPieceAtATime(t *testing.T) {
	for _, contentType := range []string{typeJSON, typeProtobuf} {
		w := newWatched(t, 1, contentType, false)
		var sent [][]byte
		var want []byte
		for range 20 {
			for _, b := range w.change() {
				sent, want = append(sent, []byte{b}), append(want, b)
			}
		}
		file, stats := recordPieces(t, Options{}, contentType, sent)
		var got []byte
		for rec := range reader(t, file).Records(nil) {
			got = append(got, rec.Data...)
		}
		require.Equal(t, string(want), string(got))
		require.EqualValues(t, 20, stats.Events)
		require.Less(t, len(file), len(want))
	}
}

// TestAFrameIsTooLarge has frames without an end: one of an unknown object, and one that begins like an earlier frame.
// Each ends the record of its watch, and nothing else.
func TestAFrameIsTooLarge(t *testing.T) {
	w := newWatched(t, 1, typeJSON, false)
	var frame []byte
	for len(frame) < 3000 {
		frame = w.change()
	}
	endless := func(head []byte) [][]byte {
		piece := bytes.Repeat([]byte("x"), 1<<20)
		return append([][]byte{head}, slices.Repeat([][]byte{piece}, maxRecord>>20+1)...)
	}
	known := append([][]byte{frame}, endless(frame[:len(frame)-1])...)
	file, stats := recordPieces(t, Options{Backlog: 64 << 20}, typeJSON, known, endless([]byte(`{"type":"ADDED"`)), [][]byte{frame, frame})
	require.EqualValues(t, 2, stats.Lost)
	ends := map[RecordKind]int{}
	var got []byte
	for rec := range reader(t, file).Records(nil) {
		got = append(got, rec.Data...)
		ends[rec.Kind]++
	}
	require.Equal(t, string(frame)+string(frame), string(got))
	require.Equal(t, 2, ends[Lost])
	require.Equal(t, 1, ends[Closed])
}

// TestRedactedFrames records large pods with redactions. No value is in the file.
func TestRedactedFrames(t *testing.T) {
	w := newWatched(t, 1, typeJSON, false)
	var sent [][]byte
	for range 50 {
		sent = append(sent, w.change())
	}
	file, stats := recordPieces(t, Options{Redact: []Redaction{{"pods", "metadata.annotations"}}}, typeJSON, sent)
	require.EqualValues(t, 50, stats.Events)
	payloads := Payloads(file)
	require.Contains(t, payloads, Mark)
	for _, pod := range w.pods {
		for _, value := range pod.Annotations {
			require.NotContains(t, payloads, value)
		}
	}
}
