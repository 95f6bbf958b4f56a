package apiclient_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
)

// The frames of HTTP/2 (RFC 9113, 6) with which a server closes a connection during a request.
const (
	h2Preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	h2Headers  = 1
	h2Reset    = 3
	h2Settings = 4
	h2GoAway   = 7
)

func h2Frame(kind byte, stream uint32, payload ...byte) []byte {
	f := []byte{0, 0, byte(len(payload)), kind, 0}
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}

// h2Server reads one request, answers with bytes, and closes the connection if leave is true.
func h2Server(c net.Conn, answer []byte, leave bool) (requests int) {
	write, written := make(chan []byte, 2), make(chan struct{})
	go func() { // a pipe has no buffer, and both sides begin with a write
		defer close(written)
		for b := range write {
			_, _ = c.Write(b)
		}
	}()
	defer func() {
		close(write)
		<-written
		_ = c.Close()
	}()
	if _, err := io.ReadFull(c, make([]byte, len(h2Preface))); err != nil {
		return 0
	}
	write <- h2Frame(h2Settings, 0)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return requests
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return requests
		}
		if head[3] != h2Headers {
			continue
		}
		requests++
		if answer != nil {
			write <- answer
		}
		if leave {
			go func() { _, _ = io.Copy(io.Discard, c) }() // reads what the client still writes
			return requests
		}
	}
}

// TestHTTP2GoesAway has frames of HTTP/2 instead of an answer. It counts how often a read and a write reach the server.
func TestHTTP2GoesAway(t *testing.T) {
	took := []byte{0, 0, 0, 1, 0, 0, 0, 0} // GOAWAY: stream 1 may have been processed; no error
	for _, c := range []struct {
		name        string
		answer      []byte
		leave       bool
		read, write int
	}{
		{"a connection that ends", nil, true, 4, 1},
		{"GOAWAY after the request was taken", h2Frame(h2GoAway, 0, took...), true, 4, 1},
		{"a stream that is reset", h2Frame(h2Reset, 1, 0, 0, 0, 2), false, 1, 1},
	} {
		for _, v := range []verb{getVerb, createVerb} {
			fixture.Bubble(t, c.name+"/"+v.name, func(t *testing.T) {
				requests := make(chan int, 100)
				transport := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() { requests <- h2Server(server, c.answer, c.leave) }()
					return client, nil
				}}
				transport.Protocols.SetUnencryptedHTTP2(true)
				start := time.Now()
				err := v.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: transport}))
				var typed *apiclient.TransportError
				require.ErrorAs(t, err, &typed)
				transport.CloseIdleConnections()
				synctest.Wait()
				close(requests)
				count := 0
				for n := range requests {
					count += n
				}
				want := map[string]int{"get": c.read, "create": c.write}[v.name]
				require.Equal(t, want, count, "%v", err)
				if want > 1 {
					require.GreaterOrEqual(t, time.Since(start), 1750*time.Millisecond)
				}
			})
		}
	}
}
