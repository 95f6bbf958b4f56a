package transport

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/leatproject/leat/apiclient/internal/secret"
)

// wrapped is the transport of a generation if there is an Options.Wrap. It sends requests through the user's
// RoundTripper, which sends them with unwrapped. The credentials are not in the request that the user's code gets.
type wrapped struct {
	base *http.Transport
	user http.RoundTripper
}

// wrappedSend has the parts of a request that wrapped hides from the user's RoundTripper. They are in the request's
// context, so that one RoundTripper can serve all generations.
type wrappedSend struct {
	base          *http.Transport
	server        *url.URL
	authorization secret.Secret
}

type wrappedSendKey struct{}

// RoundTrip sends a request through the user's RoundTripper.
func (t *wrapped) RoundTrip(req *http.Request) (*http.Response, error) {
	s := &wrappedSend{base: t.base, server: req.URL, authorization: secret.New(req.Header.Get("Authorization"))}
	hidden := req.Clone(context.WithValue(req.Context(), wrappedSendKey{}, s))
	hidden.Header.Del("Authorization")
	return t.user.RoundTrip(hidden)
}

// CloseIdleConnections closes connections without requests. The user's RoundTripper need not have this method.
func (t *wrapped) CloseIdleConnections() { t.base.CloseIdleConnections() }

// unwrapped is the argument of Options.Wrap. It sends a request with the transport of the request's generation.
type unwrapped struct{}

// RoundTrip adds the credentials and sends the request. It adds none if the user's RoundTripper has changed the server
// or has added its own. The answer refers to the request without credentials.
func (unwrapped) RoundTrip(req *http.Request) (*http.Response, error) {
	s, ok := req.Context().Value(wrappedSendKey{}).(*wrappedSend)
	if !ok {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, errors.New("apiclient: the RoundTripper of Config.WrapTransport sent a request without the context of the client's request")
	}
	sent := req
	if !s.authorization.IsZero() && req.Header.Get("Authorization") == "" && sameServer(req.URL, s.server) {
		sent = req.Clone(req.Context())
		sent.Header.Set("Authorization", s.authorization.Reveal())
	}
	resp, err := s.base.RoundTrip(sent)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}
