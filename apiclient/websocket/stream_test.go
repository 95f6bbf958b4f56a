package websocket_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestHowAConnectionEnds(t *testing.T) {
	closeWith := func(code int, text string) func(*ws.Conn) {
		return func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(code, text), time.Now().Add(time.Second))
			_, _, _ = c.NextReader() // until the client has closed
		}
	}
	rawly := func(writes ...string) func(*ws.Conn) {
		return func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			for _, w := range writes {
				_, _ = io.WriteString(c.NetConn(), w)
			}
			_, _, _ = c.NextReader() // until the client has closed
		}
	}
	spaces := func(n int) string { return strings.Repeat(" ", n) }
	unexpected := func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
	cases := []struct {
		name string
		do   func(*ws.Conn)
		is   func(error) bool
		want string
	}{
		{"normally", closeWith(ws.CloseNormalClosure, ""), nil, ""},
		{"going away", closeWith(ws.CloseGoingAway, "restart"), nil, ""},
		{"without a code", closeWith(ws.CloseNoStatusReceived, ""), nil, ""},
		{"internal error", closeWith(ws.CloseInternalServerErr, "etcd\ndown"), apierrors.IsInternalError, "code 1011: etcd down"},
		{"restart", closeWith(ws.CloseServiceRestart, ""), apierrors.IsServiceUnavailable, "code 1012"},
		{"try again", closeWith(ws.CloseTryAgainLater, "busy"), apierrors.IsServiceUnavailable, "code 1013: busy"},
		{"too big", closeWith(ws.CloseMessageTooBig, ""), unexpected, "code 1009"},
		{"policy", closeWith(ws.ClosePolicyViolation, "no"), unexpected, "code 1008: no"},
		{"with half a code", rawly("\x88\x01\x03"), isProtocol, "a close frame with a content of one byte"},
		{
			"with half a code, behind other frames", rawly("\x89\x01p", "\x8a\x00", "\x01\x7e\x01\x00"+spaces(256), "\x80\x7f\x00\x00\x00\x00\x00\x01\x00\x00"+spaces(1<<16), "\x88", "\x01\x03"),
			isProtocol, "a close frame with a content of one byte",
		},
		{"without a code, and then half of one", rawly("\x88\x00", "\x88\x01\x03"), nil, ""},
		{"half a code in a text", rawly("\x81\x04 \x88\x01 "), func(err error) bool { return errors.Is(err, codec.ErrMalformed) }, ""},
		{"a code that must not be sent", rawly("\x88\x02\x03\xed"), isProtocol, "bad close code 1005"},
		{"an unknown code", rawly("\x88\x02\x03\xe7"), isProtocol, "bad close code 999"},
		{"a code that is kept free", rawly("\x88\x02\x03\xec"), isProtocol, "bad close code 1004"},
		{"a reason that is no text", rawly("\x88\x04\x03\xe8\xff\xfe"), isProtocol, "invalid utf8"},
		{"a reason that is too long", rawly("\x88\x7e\x00\x80\x03\xe8" + spaces(126)), isProtocol, "len > 125"},
		{"unknown code", closeWith(4000, "odd"), unexpected, "code 4000: odd"},
		{"abruptly", func(c *ws.Conn) { _ = c.WriteMessage(ws.TextMessage, event("6")) }, unexpected, "the connection was lost"},
		{"inside a message", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte{0x81, 100, '{', '"'})
		}, unexpected, "the connection was lost"},
		{"inside a binary message", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write(frame(true, ws.BinaryMessage, "half")[:4])
		}, isProtocol, "text and binary"},
		{"between the frames of a message", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write(frame(false, ws.TextMessage, string(event("7")[:60])))
			goodbye(c)
		}, unexpected, "it ends too early"},
		{"a message that was cut", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, event("7")[:60])
			_ = c.WriteMessage(ws.TextMessage, event("8"))
		}, unexpected, "a message ends inside an event"},
		{"a message that was cut in a string", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`{"type":"AD\"DED`))
			_ = c.WriteMessage(ws.TextMessage, event("8"))
		}, unexpected, "a message ends inside an event"},
		{"garbage", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`}}`))
		}, func(err error) bool { return errors.Is(err, codec.ErrMalformed) }, ""},
		{"text and binary", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.BinaryMessage, event("7"))
		}, isProtocol, "text and binary messages in one watch"},
		{"nonsense", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte("HTTP/1.1 200 OK\r\n"))
		}, isProtocol, "FIN not set on control"},
		{"with an ERROR event", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410,"message":"old"}}`))
		}, apierrors.IsResourceExpired, "old"},
	}
	for _, c := range cases {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			versions, err := collect(subject(t, nil, upgraded(c.do)), t.Context())
			require.Equal(t, []string{"6"}, versions)
			if c.is == nil {
				require.NoError(t, err)
				return
			}
			require.True(t, c.is(err), "%v", err)
			require.ErrorContains(t, err, "watch pods: ")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestAConnectionThatEndsBeforeAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := must.Get(collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
		})), t.Context()))(t)
		require.Empty(t, versions)
		require.ErrorIs(t, must.Err(collect(subject(t, nil, upgraded(func(*ws.Conn) {})), t.Context())), io.ErrUnexpectedEOF)
	})
}

func isProtocol(err error) bool { return errors.Is(err, websocket.ErrProtocol) }

// frame encodes a frame of a server.
func frame(final bool, kind int, payload string) []byte {
	first := byte(kind)
	if final {
		first |= 0x80
	}
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// frames sends frames and then closes regularly.
func frames(all ...[]byte) http.HandlerFunc {
	return upgraded(func(c *ws.Conn) {
		for _, b := range all {
			_, _ = c.NetConn().Write(b)
		}
		goodbye(c)
	})
}

// protobufEvent is a message of kube-apiserver: a WatchEvent without its length.
func protobufEvent(t testing.TB, version string) string {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u", ResourceVersion: version}}
	raw := must.Get(codec.Marshal(pod, codec.MediaTypeProtobuf, podResource))(t)
	e := metav1.WatchEvent{Type: "ADDED"}
	e.Object.Raw = raw
	message := must.Get(e.Marshal())(t)
	return string(message)
}

// TestMessages has one event per message, as kube-apiserver sends them, and other divisions.
func TestMessages(t *testing.T) {
	const text, bin, more, ping = ws.TextMessage, ws.BinaryMessage, 0, ws.PingMessage
	six, seven := string(event("6")), string(event("7"))
	pb6, pb7 := protobufEvent(t, "6"), protobufEvent(t, "7")
	both := []string{"6", "7"}
	malformed := func(err error) bool { return errors.Is(err, codec.ErrMalformed) }
	cut := func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
	cases := []struct {
		name   string
		frames [][]byte
		want   []string
		is     func(error) bool // nil for a regular end
	}{
		{"texts", [][]byte{frame(true, text, six), frame(true, text, seven)}, both, nil},
		{"texts that end with a line", [][]byte{frame(true, text, six+"\n"), frame(true, text, seven+" \r\n\t")}, both, nil},
		{"binaries", [][]byte{frame(true, bin, pb6), frame(true, bin, pb7)}, both, nil},
		{"a text in fragments", [][]byte{frame(false, text, six[:9]), frame(false, more, ""), frame(false, more, six[9:30]), frame(true, more, six[30:]), frame(true, text, seven)}, both, nil},
		{"a binary in fragments", [][]byte{frame(false, bin, ""), frame(false, more, pb6[:1]), frame(true, more, pb6[1:]), frame(true, bin, pb7)}, both, nil},
		{"pings between fragments", [][]byte{frame(false, text, six[:50]), frame(true, ping, "a"), frame(true, more, six[50:]), frame(true, ping, "b"), frame(true, text, seven)}, both, nil},
		{"empty texts", [][]byte{frame(true, text, ""), frame(true, text, six), frame(true, text, " "), frame(true, text, ""), frame(true, text, seven)}, both, nil},
		{"two events in a text", [][]byte{frame(true, text, six+"\n"+seven)}, both, nil},
		{"one and a half", [][]byte{frame(true, text, six+seven[:70]), frame(true, text, seven[70:])}, both[:1], cut},
		{"half a text", [][]byte{frame(true, text, six), frame(true, text, seven[:70]), frame(true, text, seven)}, both[:1], cut},
		{"half a text that ends like a whole one", [][]byte{frame(true, text, six), frame(true, text, seven[:len(seven)-1]), frame(true, text, seven)}, both[:1], malformed},
		{"half a text that is the last", [][]byte{frame(true, text, six), frame(true, text, seven[:len(seven)-1])}, both[:1], cut},
		{"half a binary", [][]byte{frame(true, bin, pb6), frame(true, bin, pb7[:len(pb7)-5])}, both[:1], malformed},
		{"an empty binary", [][]byte{frame(true, bin, pb6), frame(true, bin, "")}, both[:1], malformed},
		{"text after binary", [][]byte{frame(true, bin, pb6), frame(true, text, seven)}, both[:1], isProtocol},
		{"binary after text", [][]byte{frame(true, text, six), frame(true, bin, pb7)}, both[:1], isProtocol},
		{"binary after empty text", [][]byte{frame(true, text, ""), frame(true, bin, pb7)}, nil, isProtocol},
		{"a compressed frame", [][]byte{{0xc1, 1, 0}}, nil, isProtocol},
		{"a masked frame", [][]byte{{0x81, 0x81, 0, 0, 0, 0, '{'}}, nil, isProtocol},
		{"a continuation of nothing", [][]byte{frame(true, text, six), frame(true, more, seven)}, both[:1], isProtocol},
		{"a message inside another", [][]byte{frame(false, text, six), frame(true, text, seven)}, both[:1], isProtocol},
		{"an unknown kind", [][]byte{frame(true, 3, six)}, nil, isProtocol},
		{"a ping that is too long", [][]byte{frame(true, ping, six)}, nil, isProtocol},
		{"a ping in fragments", [][]byte{frame(false, ping, "")}, nil, isProtocol},
		{"a negative length", [][]byte{{0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0}}, nil, isProtocol},
		{"lengths that add up to a negative one", [][]byte{frame(false, text, six), {0x80, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, both[:1], isProtocol},
		{"half a close code", [][]byte{frame(true, text, six), frame(true, ws.CloseMessage, "\x03")}, both[:1], isProtocol},
		{"a close code that must not be sent", [][]byte{frame(true, text, six), frame(true, ws.CloseMessage, "\x03\xee")}, both[:1], isProtocol},
		{"a reason that is no text", [][]byte{frame(true, text, six), frame(true, ws.CloseMessage, "\x03\xe8\xff")}, both[:1], isProtocol},
	}
	for _, c := range cases {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			versions, err := collect(subject(t, nil, frames(c.frames...)), t.Context())
			require.Equal(t, c.want, versions)
			if c.is == nil {
				require.NoError(t, err)
				return
			}
			require.True(t, c.is(err), "%v", err)
			require.ErrorContains(t, err, "watch pods: ")
		})
	}
}

// TestAnIncompleteMessageEndsTheWatch ends a watch at the end of an incomplete message, and not at the end of the next
// one.
func TestAnIncompleteMessageEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		versions, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, event("7")[:60])
			_, _, _ = c.NextReader()
		})), t.Context())
		require.Equal(t, []string{"6"}, versions)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Zero(t, time.Since(start))
	})
}

// TestSizes sends events that are too large for the client. The errors are those of a watch over HTTP.
func TestSizes(t *testing.T) {
	const limit = 2000
	padded := func(e string, n int) string { return e + strings.Repeat(" ", n-len(e)) }
	pb := protobufEvent(t, "6")
	pbOf := func(n int) string { // an unknown field fills the object
		filler := make([]byte, n-len(pb)-3)
		return pb + "\xfa" + string(append([]byte{0x01}, binary.AppendUvarint(nil, uint64(len(filler)-1))...)) + string(filler[:len(filler)-1])
	}
	require.Len(t, pbOf(limit), limit)
	large := strings.Replace(string(event("6")), `"web"`, `"web","x":"`+strings.Repeat("x", limit)+`"`, 1)
	cases := []struct {
		name string
		send []byte
		ok   bool
	}{
		{"text of the largest size", frame(true, ws.TextMessage, padded(string(event("6")), limit)), true},
		{"text", frame(true, ws.TextMessage, large), false},
		{"text in fragments", append(frame(false, ws.TextMessage, large[:limit/2]), frame(true, 0, large[limit/2:])...), false},
		{"binary of the largest size", frame(true, ws.BinaryMessage, pbOf(limit)), true},
		{"binary", frame(true, ws.BinaryMessage, pbOf(limit+1)), false},
		{"binary in fragments", append(frame(false, ws.BinaryMessage, pbOf(limit + 1)[:limit/2]), frame(true, 0, pbOf(limit + 1)[limit/2:])...), false},
		{"binary that is long in coming", frame(true, ws.BinaryMessage, strings.Repeat("x", 1<<20))[:limit+100], false},
	}
	for _, c := range cases {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			start := time.Now()
			versions, err := collect(subject(t, func(c *apiclient.Config) { c.MaxObjectBytes = limit }, frames(c.send)), t.Context())
			require.Zero(t, time.Since(start), "the watch ends before a message that is too large has arrived")
			if c.ok {
				require.NoError(t, err)
				require.Equal(t, []string{"6"}, versions)
				return
			}
			var large *codec.TooLargeError
			require.ErrorAs(t, err, &large)
			require.Equal(t, limit, large.Limit)
			require.Empty(t, versions)
		})
	}
}
