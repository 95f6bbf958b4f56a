package websocket_test

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// canned is a transport whose WebSocket sends the given bytes, and whose other answers have the given bytes.
type canned struct {
	socket    []byte
	mediaType string
	body      []byte
}

// halfPipe is a connection on which the other side has already written everything.
type halfPipe struct{ io.Reader }

func (halfPipe) Write(p []byte) (int, error) { return len(p), nil }
func (halfPipe) Close() error                { return nil }

func acceptOf(r *http.Request) string {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") == "" {
		header := http.Header{"Content-Type": {c.mediaType}}
		return &http.Response{StatusCode: 200, Request: r, Header: header, Body: io.NopCloser(bytes.NewReader(c.body))}, nil
	}
	header := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {acceptOf(r)}}
	return &http.Response{StatusCode: 101, Request: r, Header: header, Body: halfPipe{bufio.NewReader(bytes.NewReader(c.socket))}}, nil
}

const fuzzLimit = 4 << 10

// watched returns the events of a watch, and its error.
func watched(lw api.ListerWatcher[*corev1.Pod], t *testing.T) (events []string, last error) {
	for e, err := range lw.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
		if last = err; err == nil {
			events = append(events, string(e.Type)+" "+e.ResourceVersion)
		}
	}
	return events, last
}

func cannedPods(t *testing.T, c canned) *apiclient.TypedClient[*corev1.Pod] {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://canned", Transport: c, MaxObjectBytes: fuzzLimit}))(t)
	return apiclient.NewTyped[*corev1.Pod](client, podResource, "")
}

// FuzzFrames reads arbitrary bytes. A watch must always end, and must not yield more events than the bytes can contain.
func FuzzFrames(f *testing.F) {
	f.Add(frame(true, ws.TextMessage, string(event("6"))))
	f.Add(append(frame(false, ws.BinaryMessage, protobufEvent(f, "6")[:20]), frame(true, 0, protobufEvent(f, "6")[20:])...))
	f.Add([]byte{0x89, 0, 0x8a, 0, 0x88, 2, 3, 0xe8})
	f.Add([]byte{0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3})
	f.Add([]byte{0x01, 126, 0, 1, '{', 0x00, 0, 0x80, 1, '}'})
	f.Fuzz(func(t *testing.T, socket []byte) {
		events, _ := watched(websocket.Watch(cannedPods(t, canned{socket: socket})), t)
		require.LessOrEqual(t, len(events), len(socket)/20)
	})
}

// messagesOf makes messages from a script. Each message is a byte, which decides on the number of fragments (lowest
// bits) and on the content (highest bits): one of the given events, whole or cut, or bytes of the script.
func messagesOf(script []byte, valid [][]byte) (messages [][]byte, fragments []int) {
	for len(script) > 1 && len(messages) < 20 {
		op, n := script[0], int(script[1])
		script = script[2:]
		var m []byte
		switch e := valid[n%len(valid)]; {
		case op&0x80 == 0:
			m = e
		case op&0x40 == 0:
			m = e[:n*len(e)/256]
		default:
			n = min(n, len(script))
			m, script = script[:n], script[n:]
		}
		messages, fragments = append(messages, m), append(fragments, 1+int(op&7))
	}
	return messages, fragments
}

// FuzzMessages compares a watch over WebSocket with one over HTTP whose body has the same frames. Both must yield the
// same events and end in the same way. The exception is a message that ends inside an event: it is an error, where HTTP
// would wait for more.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 2, 2, 3, 3}, false)
	f.Add([]byte{0, 0, 1, 1, 0x80, 50, 2, 2}, true)
	f.Add([]byte{0x82, 200, 0xc0, 3, '{', '}', ' ', 7, 0}, false)
	f.Add([]byte{0xc1, 2, 0x0a, 0x00, 0, 1}, true)
	text := [][]byte{event("6"), event("7"), []byte(strings.Repeat(" ", 100)), {}, bytes.Replace(event("8"), []byte("web"), bytes.Repeat([]byte("w"), fuzzLimit), 1)}
	bin := [][]byte{[]byte(protobufEvent(f, "6")), []byte(protobufEvent(f, "7")), make([]byte, fuzzLimit+1), {}}
	f.Fuzz(func(t *testing.T, script []byte, asBinary bool) {
		valid, kind, mediaType := text, ws.TextMessage, codec.MediaTypeJSON
		if asBinary {
			valid, kind, mediaType = bin, ws.BinaryMessage, codec.MediaTypeProtobuf+";stream=watch"
		}
		messages, fragments := messagesOf(script, valid)
		c := canned{mediaType: mediaType}
		halves := false
		for i, m := range messages {
			c.socket = append(c.socket, fragmented(kind, m, fragments[i])...)
			if asBinary {
				c.body = binary.BigEndian.AppendUint32(c.body, uint32(len(m)))
			}
			c.body = append(c.body, m...)
			trimmed := bytes.TrimRight(m, " \t\r\n")
			halves = halves || !asBinary && len(trimmed) > 0 && trimmed[len(trimmed)-1] != '}'
		}
		c.socket = append(c.socket, frame(true, ws.CloseMessage, "\x03\xe8")...)

		pods := cannedPods(t, c)
		events, err := watched(websocket.Watch(pods), t)
		want, wantErr := watched(pods, t)
		if halves {
			require.LessOrEqual(t, len(events), len(want))
			require.Equal(t, want[:len(events)], events)
			require.Error(t, err)
			return
		}
		require.Equal(t, want, events)
		require.Equal(t, wantErr == nil, err == nil, "%v, over HTTP %v", err, wantErr)
		for _, class := range []error{codec.ErrMalformed, codec.ErrTooLarge, codec.ErrUnknownEvent, io.ErrUnexpectedEOF} {
			require.Equal(t, errors.Is(wantErr, class), errors.Is(err, class), "%v, over HTTP %v", err, wantErr)
		}
	})
}

// fragmented is a message in n frames, with a ping between them.
func fragmented(kind int, message []byte, n int) []byte {
	var out []byte
	for part := range slices.Chunk(message, max(1, (len(message)+n-1)/n)) {
		if out != nil {
			out, kind = append(out, frame(true, ws.PingMessage, "")...), 0
		}
		out = append(out, frame(false, kind, string(part))...)
	}
	if out != nil {
		kind = 0
	}
	return append(out, frame(true, kind, "")...)
}
