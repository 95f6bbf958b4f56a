package recording

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/observe/recording/internal/frame"
	"github.com/leatproject/leat/observe/recording/internal/redact"
)

// Wrap returns a RoundTripper that sends requests with next and records the answers to lists and watches of
// collections. It is for apiclient.Config.WrapTransport, which gives it requests without credentials. No header of a
// request is recorded, and neither is the body of an answer that is not successful. A watch over WebSocket is noted
// without data. Compressed lists are recorded, and passed on, decompressed.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return &tapping{r, next} }

// tapping is the RoundTripper of Wrap.
type tapping struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip sends a request, and taps its answer.
func (t *tapping) RoundTrip(req *http.Request) (*http.Response, error) {
	s, ok := streamOf(req)
	if !ok {
		return t.next.RoundTrip(req)
	}
	hidden := t.recorder.redact.Of(s.Resource().String())
	sent := req
	if len(hidden) > 0 || t.recorder.o.JSON || s.Watch && req.Header.Get("Accept-Encoding") != "" {
		sent = req.Clone(req.Context())
		if len(hidden) > 0 || t.recorder.o.JSON {
			sent.Header.Set("Accept", acceptJSON(req.Header.Get("Accept")))
		}
		if s.Watch {
			sent.Header.Del("Accept-Encoding") // kube-apiserver never compresses a watch
		}
	}
	s.As = conversion(sent.Header.Get("Accept"))
	resp, err := t.next.RoundTrip(sent)
	if err != nil {
		return resp, err
	}
	t.recorder.tap(s, resp, hidden)
	return resp, nil
}

// tap records an answer.
func (r *Recorder) tap(s *Stream, resp *http.Response, hidden redact.Roots) {
	s.ID, s.Code, s.ContentType = r.streams.Add(1), resp.StatusCode, mediaType(resp.Header.Get("Content-Type"))
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		s.Note = "a watch over WebSocket is not recorded"
	case resp.StatusCode != http.StatusOK:
		s.Note = "the answer is not successful"
	case len(hidden) > 0 && s.ContentType != typeJSON:
		s.Note = "the server did not answer in JSON, so its values cannot be redacted"
	case s.As == asTable:
		s.Note = "a table is not recorded"
	case encoding != "" && (encoding != "gzip" || s.Watch):
		s.Note = "the answer is compressed"
	}
	t := &tap{recorder: r, Stream: s, frames: frame.Divider{Watch: s.Watch, Protobuf: s.protobuf()}}
	if len(hidden) > 0 {
		redact.Selectors(s.Options, hidden, r.hash())
		t.filter = redact.NewFilter(hidden, r.hash())
	}
	if !r.add(tapped{kind: Opened, stream: t, at: time.Now()}) || s.Note != "" {
		return
	}
	body := &tappedBody{ReadCloser: resp.Body, tap: t}
	if encoding == "gzip" {
		body.ReadCloser = &inflated{body: resp.Body}
		resp.Header = resp.Header.Clone()
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	resp.Body = body
}

// conversion returns the kind into which an Accept header asks to convert objects. The first choice counts.
func conversion(accept string) string {
	first, _, _ := strings.Cut(accept, ",")
	_, parameters, err := mime.ParseMediaType(first)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(parameters["as"], "List")
}

// inflated is the body of a compressed list.
type inflated struct {
	body io.ReadCloser
	gz   *gzip.Reader
}

func (f *inflated) Read(p []byte) (n int, err error) {
	if f.gz == nil {
		if f.gz, err = gzip.NewReader(f.body); err != nil {
			return 0, err
		}
	}
	return f.gz.Read(p)
}

func (f *inflated) Close() error { return f.body.Close() }

// tappedBody copies what its reader reads.
type tappedBody struct {
	io.ReadCloser
	tap *tap
}

func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.tap.read(p[:n])
	}
	switch {
	case err == nil:
	case err == io.EOF:
		b.tap.close(Ended)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		b.tap.close(Closed)
	default:
		b.tap.close(Broken)
	}
	return n, err
}

// Close ends the stream. A reader that has all objects of a list need not read the end of the answer.
func (b *tappedBody) Close() error {
	b.tap.close(Closed)
	return b.ReadCloser.Close()
}

// tap is a stream that is being recorded.
type tap struct {
	*Stream
	recorder *Recorder

	reading sync.Mutex // guards over; the client may close a body that it reads
	over    bool

	// The fields below belong to the goroutine of Run.
	filter *redact.Filter // nil if nothing is redacted
	frames frame.Divider
	ended  bool
}

// read records what the client has read.
func (t *tap) read(p []byte) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if !t.over {
		t.over = !t.recorder.add(tapped{kind: Data, stream: t, at: time.Now(), data: p})
	}
}

// close records the end of the answer.
func (t *tap) close(kind RecordKind) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.over {
		return
	}
	t.over = true
	t.recorder.add(tapped{kind: kind, stream: t, at: time.Now()})
}

// write writes an entry of the backlog.
func (t *tap) write(e tapped) {
	r := t.recorder
	switch {
	case t.ended:
	case e.kind == Opened:
		t.At = e.at
		r.w.opened(t.Stream)
		if t.Note != "" {
			t.end(Ended, e)
		}
	case e.kind == Data:
		r.bytes.Add(uint64(len(e.data)))
		if t.divide(e) != nil {
			t.end(Lost, e)
		}
	default:
		if rest := t.frames.Rest(); len(rest) > 0 {
			r.w.data(t.ID, e.at, rest)
		}
		t.end(e.kind, e)
	}
}

// divide redacts data and writes the frames that are complete.
func (t *tap) divide(e tapped) (err error) {
	data := e.data
	if t.filter != nil {
		if data, err = t.filter.Copy(data); err != nil {
			return err
		}
	}
	before := t.frames.Frames
	first, rest, err := t.frames.Add(data)
	if err != nil {
		return err
	}
	t.recorder.events.Add(t.frames.Frames - before)
	for _, whole := range [][]byte{first, rest} {
		if len(whole) > 0 {
			t.recorder.w.data(t.ID, e.at, whole)
		}
	}
	return nil
}

func (t *tap) end(kind RecordKind, e tapped) {
	t.ended = true
	if kind == Lost {
		t.recorder.lost.Add(1)
	}
	t.recorder.w.ended(kind, t.ID, e.at)
	t.filter, t.frames = nil, frame.Divider{}
}
