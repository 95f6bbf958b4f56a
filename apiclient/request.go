package apiclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// request is one call before it is sent.
type request struct {
	verb   string // for errors: "list"
	target string // for errors: "pods", "pods default/web"

	method      string
	path        string // relative to the server's path, not escaped
	query       url.Values
	accept      string
	body        []byte
	contentType string // of the body
	ifNoneMatch string // the ETag of an answer that the caller has

	once  bool // never repeated: a list, a watch
	watch bool

	resource    api.Resource // for Config.OnRequest, like the next field
	subresource string

	sent *sentSecrets // errors must not quote them
}

// fail wraps an error with the operation, once. It removes credentials from its text, and shortens a long text.
func (r request) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", r.verb, quote.Short(r.target, maxQuotedURL), limited(r.sent.cleanError(err)))
}

// newRequest makes the request for net/http and returns the credentials that it added.
func (c *Client) newRequest(ctx context.Context, r request) (req *http.Request, used Credentials, err error) {
	u := *c.base
	u.Path += r.path
	u.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err = http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, used, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", r.accept)
	req.Header.Set("Accept-Encoding", c.acceptEncoding)
	if r.body != nil {
		req.Header.Set("Content-Type", r.contentType)
	}
	if r.ifNoneMatch != "" {
		req.Header.Set("If-None-Match", r.ifNoneMatch)
	}
	used, err = c.credentials.apply(ctx, req.Header)
	return req, used, err
}

// do sends a request, repeats it as Retry says, and returns a successful answer. The caller closes the body. If the
// server refuses the credentials and there are new ones, the request is sent once more.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	began, refused := time.Now(), false
	for n := 1; ; n++ {
		resp, o := c.attempt(ctx, r, n)
		if o.err == nil {
			return resp, nil
		}
		if o.code == http.StatusUnauthorized && !refused && c.credentials.refused(ctx, o.used) {
			refused = true
			continue
		}
		wait, again := c.retry.pause(r, o, n, time.Since(began))
		switch {
		case !again || !fits(ctx, wait):
			return nil, tried(o.err, n)
		case !waitFor(ctx, wait):
			return nil, fmt.Errorf("%w while waiting to send it again after: %w", ctx.Err(), tried(o.err, n))
		}
	}
}

// attempt sends a request once, with the newest credentials.
func (c *Client) attempt(ctx context.Context, r request, n int) (*http.Response, outcome) {
	seen := c.observe(r, n)
	waited, err := c.limit(ctx, r)
	seen.limited(waited)
	if err != nil {
		seen.ended(err)
		return nil, outcome{err: err}
	}
	req, used, err := c.newRequest(ctx, r)
	var resp *http.Response
	if err == nil {
		resp, err = c.send(req, used, seen)
	}
	if err != nil {
		seen.ended(err)
		return nil, outcome{err: err, used: used}
	}
	if isSuccess(resp) {
		return resp, outcome{used: used}
	}
	defer resp.Body.Close()
	err = c.statusError(resp, used)
	if err := givenUp(ctx); err != nil {
		return nil, outcome{err: err} // a cancelled caller gets no partial reason
	}
	seen.failed(err)
	o := outcome{err: err, used: used, code: resp.StatusCode}
	o.retryAfter, o.retryAsked = retryRequested(err, resp.Header)
	return nil, o
}

// read sends a request and returns an answer that can contain objects. The caller closes the body.
func (c *Client) read(ctx context.Context, r request) (body io.ReadCloser, mediaType string, err error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, "", err
	}
	mediaType = resp.Header.Get("Content-Type")
	if err := c.checkContentType(mediaType, resp.Body); err != nil {
		_ = resp.Body.Close()
		if givenUp := givenUp(ctx); givenUp != nil {
			err = givenUp
		}
		return nil, "", c.credentials.sent.cleanError(err)
	}
	return resp.Body, mediaType, nil
}

// discard sends a request and ignores the body of a successful answer.
func (c *Client) discard(ctx context.Context, r request) error {
	body, _, err := c.read(ctx, r)
	if err != nil {
		return r.fail(err)
	}
	// Read the body so that the connection can be used again, but not without a limit.
	_ = beginning(body, maxErrorBody)
	return body.Close()
}

// endpoint is a resource of a server, in one namespace or in all.
type endpoint struct {
	client    *Client
	resource  api.Resource
	namespace string
}

func newEndpoint(c *Client, r api.Resource, namespace string) endpoint {
	switch {
	case c == nil:
		panic("apiclient: the Client of " + r.String() + " is nil")
	case r.Plural == "" || r.Version == "":
		panic(fmt.Sprintf("apiclient: a resource needs a version and a plural name: %+v", r))
	}
	return endpoint{client: c, resource: r, namespace: namespace}
}

// prefix returns the path of the group and version: /api/v1, /apis/apps/v1.
func (e endpoint) prefix() string {
	if e.resource.Group == "" {
		return "/api/" + e.resource.Version
	}
	return "/apis/" + e.resource.Group + "/" + e.resource.Version
}

// collection returns the path of all objects in a namespace, or of all objects if it is empty.
func (e endpoint) collection(namespace string) (string, error) {
	if namespace == "" {
		return e.prefix() + "/" + e.resource.Plural, nil
	}
	if !e.resource.Namespaced {
		return "", fmt.Errorf("apiclient: %s have no namespace, but the client has the namespace %q", e.resource, namespace)
	}
	if err := checkSegment("namespace", namespace); err != nil {
		return "", err
	}
	return e.prefix() + "/namespaces/" + namespace + "/" + e.resource.Plural, nil
}

// locate returns the key with its namespace: the key's own, or the client's. Two different ones are an error.
func (e endpoint) locate(key api.Key) (api.Key, error) {
	if key.Namespace == "" {
		key.Namespace = e.namespace
	}
	switch {
	case e.namespace != "" && key.Namespace != e.namespace:
		return key, fmt.Errorf("apiclient: the object has the namespace %q, but the client has the namespace %q", key.Namespace, e.namespace)
	case e.resource.Namespaced && key.Namespace == "":
		return key, fmt.Errorf("apiclient: %s need a namespace", e.resource)
	}
	return key, nil
}

// object returns the path of one object or of one of its subresources.
func (e endpoint) object(key api.Key, subresource string) (string, error) {
	key, err := e.locate(key)
	if err != nil {
		return "", err
	}
	path, err := e.collection(key.Namespace)
	if err != nil {
		return "", err
	}
	if err := checkSegment("name", key.Name); err != nil {
		return "", err
	}
	path += "/" + key.Name
	if subresource != "" {
		path += "/" + subresource
	}
	return path, nil
}

// checkSegment refuses a name that would lead to another path.
func checkSegment(what, s string) error {
	if s == "" {
		return errors.New("apiclient: the " + what + " is empty")
	}
	if s == "." || s == ".." {
		return fmt.Errorf("apiclient: the %s %q is not valid in a path", what, s)
	}
	for i := range len(s) {
		if c := s[i]; c == '/' || c == '%' || c < ' ' || c == 0x7f {
			return fmt.Errorf("apiclient: the %s %q is not valid in a path", what, s)
		}
	}
	return nil
}

// target names an object in errors: "pods default/web", "pods default/web/eviction".
func (e endpoint) target(key api.Key, subresource string) string {
	if key.Namespace == "" {
		key.Namespace = e.namespace
	}
	t := e.resource.String() + " " + api.FormatKey(key)
	if subresource != "" {
		t += "/" + subresource
	}
	return t
}

// objectRequest prepares a request for one object.
func (e endpoint) objectRequest(verb, method string, key api.Key, subresource string, options any) (request, error) {
	r := request{verb: verb, target: e.target(key, subresource), method: method, resource: e.resource, subresource: subresource, sent: e.client.credentials.sent}
	path, err := e.object(key, subresource)
	if err != nil {
		return r, r.fail(err)
	}
	r.path = path
	if options != nil {
		if r.query, err = queryparams.Convert(options); err != nil {
			return r, r.fail(err)
		}
	}
	return r, nil
}

// collectionRequest prepares a request for all objects of the endpoint.
func (e endpoint) collectionRequest(verb, method string, o *metav1.ListOptions) (request, error) {
	r := request{verb: verb, target: e.resource.String(), method: method, resource: e.resource, sent: e.client.credentials.sent}
	path, err := e.collection(e.namespace)
	if err != nil {
		return r, r.fail(err)
	}
	r.path = path
	if r.query, err = queryparams.Convert(o); err != nil {
		return r, r.fail(err)
	}
	return r, nil
}

// createRequest prepares the creation of an object. The server may generate its name.
func (e endpoint) createRequest(key api.Key, options any) (request, error) {
	r := request{verb: "create", target: e.target(key, ""), method: http.MethodPost, resource: e.resource, sent: e.client.credentials.sent}
	key, err := e.locate(key)
	if err != nil {
		return r, r.fail(err)
	}
	if r.path, err = e.collection(key.Namespace); err != nil {
		return r, r.fail(err)
	}
	if r.query, err = queryparams.Convert(options); err != nil {
		return r, r.fail(err)
	}
	return r, nil
}
