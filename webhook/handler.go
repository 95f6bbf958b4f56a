package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

const (
	// longestTimeout is the largest timeoutSeconds of a webhook.
	longestTimeout = 30 * time.Second
	// largestMargin is the most time that is kept for the answer.
	largestMargin = time.Second
	// maxCodecBytes is larger than every body that the handler reads.
	maxCodecBytes = 1<<31 - 1
)

// ServeHTTP answers one request: with a review, or with a Status if the request has no valid review or the webhook has
// failed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	h, known := s.hooks[r.URL.Path]
	s.mu.RUnlock()
	if !known {
		f := refuse(http.StatusNotFound, "there is no webhook at the path %q", quote.Short(r.URL.Path, maxName))
		s.logFailure(r, f)
		write(w, f.code, f.status())
		return
	}
	code, start := http.StatusOK, time.Now()
	observer := s.out.counts() // the same one, because it counts the requests in flight
	observer.WebhookStarted(r.URL.Path)
	defer func() { observer.WebhookEnded(r.URL.Path, code, time.Since(start)) }()
	answer, err := s.handle(w, r, h)
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			f = &failure{http.StatusInternalServerError, err}
		}
		s.logFailure(r, f)
		code, answer = f.code, f.status()
	}
	write(w, code, answer)
}

// handle reads and answers one request for a known path. It takes a slot after it has read the body, so a peer that
// sends slowly occupies no slot.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, h hook) (any, error) {
	if r.Method != http.MethodPost {
		return nil, refuse(http.StatusMethodNotAllowed, "a webhook accepts only POST, not %s", quote.Short(r.Method, maxName))
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type is %q, and a webhook accepts only application/json",
			quote.Short(r.Header.Get("Content-Type"), maxName))
	}
	limit, err := s.timeout(r, h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	part := share{all: &s.bodyBytes}
	defer part.release()
	body, err := s.body(ctx, w, r, h, &part)
	if err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, refuse(http.StatusTooManyRequests, "the webhook handles %d other requests, which is its limit", cap(s.slots))
	}
	return s.review(ctx, h, body)
}

// timeout returns the time that the webhook has. The API server sends its own limit as a query parameter, except to
// conversion webhooks, which always have 30 seconds.
func (s *Server) timeout(r *http.Request, h hook) (time.Duration, error) {
	text := r.URL.Query().Get("timeout")
	switch {
	case text == "" && s.o.Limits.Timeout > 0:
		return s.o.Limits.Timeout, nil
	case text == "" && h.conversion:
		return longestTimeout - largestMargin, nil
	case text == "":
		return defaultTimeout, nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit <= 0 {
		return 0, refuse(http.StatusBadRequest, "the query parameter timeout is %q, which is not a positive duration", quote.Short(text, maxName))
	}
	most := longestTimeout
	if s.o.Limits.Timeout > 0 {
		most = s.o.Limits.Timeout
	}
	return min(limit-min(limit/10, largestMargin), most), nil
}

// errNoMemory says that all bodies together have too many bytes.
var errNoMemory = errors.New("the bodies of other requests have reached the limit of the webhook")

// share is the part of Server.bodyBytes that one body takes.
type share struct {
	all   *atomic.Int64
	taken int64
}

// take takes n bytes. It reports whether so many were left.
func (s *share) take(n int) bool {
	s.taken += int64(n)
	return s.all.Add(-int64(n)) >= 0
}

func (s *share) release() { s.all.Add(s.taken) }

// counted is a body whose bytes count for a share.
type counted struct {
	io.Reader
	part *share
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if !c.part.take(n) {
		return n, errNoMemory
	}
	return n, err
}

// body reads a body of limited size. A body that is not complete when the time of the request is over breaks off, if
// the connection has deadlines.
func (s *Server) body(ctx context.Context, w http.ResponseWriter, r *http.Request, h hook, part *share) ([]byte, error) {
	limit := s.o.Limits.MaxAdmissionBytes
	if h.conversion {
		limit = s.o.Limits.MaxConversionBytes
	}
	connection := http.NewResponseController(w)
	end, _ := ctx.Deadline()
	_ = connection.SetReadDeadline(end)                            // a connection without deadlines ends with its server
	defer func() { _ = connection.SetReadDeadline(time.Time{}) }() // otherwise it ends the context of the request
	body, err := io.ReadAll(counted{http.MaxBytesReader(nil, r.Body, limit), part})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes, which is the limit of this webhook", limit)
	case errors.Is(err, errNoMemory):
		return nil, refuse(http.StatusTooManyRequests, "%w", err)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "cannot read the body: %w", err)
	}
	return body, nil
}

// review calls the webhook. If its code panics, the answer is 500, without the value of the panic.
func (s *Server) review(ctx context.Context, h hook, body []byte) (answer any, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.out.counts().WebhookPanicked(h.conversion)
			err = &failure{http.StatusInternalServerError, &panicked{api.Recovered(v)}}
		}
	}()
	return h.review(ctx, body)
}

// panicked hides the value of a panic from the user, because it may contain anything. The log has it.
type panicked struct{ cause *api.PanicError }

func (*panicked) Error() string   { return "the webhook panicked; its log has the reason" }
func (p *panicked) Unwrap() error { return p.cause }

// logFailure logs a request that did not get a review.
func (s *Server) logFailure(r *http.Request, f *failure) {
	fields := []zap.Field{
		zap.String("path", quote.Short(r.URL.Path, maxName)), zap.String("peer", r.RemoteAddr), zap.Int("code", f.code),
	}
	var p *api.PanicError
	if errors.As(f, &p) {
		s.out.log().Error("a webhook panicked", append(fields, zap.NamedError("err", p), zap.ByteString("stack", p.Stack))...)
		return
	}
	s.out.log().Warn("a request was refused", append(fields, zap.String("err", f.status().Message))...)
}

// write sends an answer. If the peer is gone, the answer is lost.
func write(w http.ResponseWriter, code int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		code, body = http.StatusInternalServerError, fmt.Appendf(nil, "webhook: encode the answer: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
