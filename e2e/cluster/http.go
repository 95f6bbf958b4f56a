package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// HTTPClient returns a client that trusts the cluster. It sends the token with every request unless the token is empty.
// It speaks HTTP/2. The caller closes its idle connections.
func (c *Cluster) HTTPClient(token string) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.authority.certPEM)
	return &http.Client{Transport: &bearer{
		token: token,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
	}}
}

// Do sends a request to the API server as the user of the token, and returns the answer, whatever its status. The body
// is JSON; a PATCH is a merge patch. An empty body is not sent.
func (c *Cluster) Do(ctx context.Context, token, method, path string, body []byte) (status int, answer []byte, err error) {
	client := c.admin
	if token != AdminToken {
		client = c.HTTPClient(token)
		defer client.CloseIdleConnections()
	}
	return do(ctx, client, method, c.URL()+path, body)
}

// Must does what Do does, as the administrator. It returns an error for every status except 2xx.
func (c *Cluster) Must(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	status, answer, err := c.Do(ctx, AdminToken, method, path, body)
	if err == nil && status/100 != 2 {
		err = &StatusError{Method: method, Path: path, Code: status, Answer: answer}
	}
	return answer, err
}

// StatusError is an answer with another status than 2xx.
type StatusError struct {
	Method, Path string
	Code         int
	Answer       []byte
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("cluster: %s %s: %d: %s", e.Method, e.Path, e.Code, e.Answer)
}

// requestLimit is the time limit of one request. It is longer than the limits of the servers.
const requestLimit = 90 * time.Second

func do(ctx context.Context, client *http.Client, method, url string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	switch {
	case method == http.MethodPatch:
		request.Header.Set("Content-Type", "application/merge-patch+json")
	case len(body) > 0:
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// bearer adds a token to every request.
type bearer struct {
	token string
	*http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.Transport.RoundTrip(r)
}
