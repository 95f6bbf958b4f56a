package apiclient

import (
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/internal/call"
)

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
		panic(fmt.Sprintf("apiclient: a resource without version or plural: %+v", r))
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
	ok := s != "." && s != ".."
	for i := range len(s) {
		c := s[i]
		ok = ok && c != '/' && c != '%' && c >= ' ' && c != 0x7f
	}
	if !ok {
		return fmt.Errorf("apiclient: the %s %q is not valid in a path", what, s)
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

func (e endpoint) request(verb, method, target string) request {
	return request{client: e.client, verb: verb, target: target, Call: call.Call{Method: method}, resource: e.resource}
}

// objectRequest prepares a request for one object.
func (e endpoint) objectRequest(verb, method string, key api.Key, subresource string, options any) (request, error) {
	r := e.request(verb, method, e.target(key, subresource))
	r.subresource = subresource
	var err error
	if r.Path, err = e.object(key, subresource); err == nil && options != nil {
		err = r.setOptions(options)
	}
	return r, r.fail(err)
}

// collectionRequest prepares a request for all objects of the endpoint.
func (e endpoint) collectionRequest(verb, method string, o *metav1.ListOptions) (request, error) {
	r := e.request(verb, method, e.resource.String())
	var err error
	if r.Path, err = e.collection(e.namespace); err == nil {
		r.Query, err = queryparams.Convert(o)
	}
	return r, r.fail(err)
}

// createRequest prepares the creation of an object. The server may generate its name.
func (e endpoint) createRequest(key api.Key, options any) (request, error) {
	r := e.request("create", http.MethodPost, e.target(key, ""))
	key, err := e.locate(key)
	if err == nil {
		r.Path, err = e.collection(key.Namespace)
	}
	if err == nil {
		err = r.setOptions(options)
	}
	return r, r.fail(err)
}

// setOptions sets the query. A write without a field manager gets that of the client.
func (r *request) setOptions(options any) (err error) {
	r.Query, err = queryparams.Convert(options)
	if m := r.client.fieldManager; m != "" && r.Method != http.MethodGet && !r.managed() {
		r.Query.Set("fieldManager", m)
	}
	return err
}

// managed reports whether the request names a field manager.
func (r *request) managed() bool { return r.Query.Get("fieldManager") != "" }
