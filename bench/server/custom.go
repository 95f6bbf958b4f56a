package server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/leatproject/leat/bench/load"
)

// Custom serves many collections with a few objects each, over TLS and HTTP/2: custom resources, or the namespaces of
// one of them. Its objects never change.
type Custom struct {
	host
	resources, namespaces, objects int

	accepted atomic.Int64 // connections
}

// NewCustom listens on loopback. It serves a number of resources or, if namespaces is not 0, one resource in this
// number of namespaces.
func NewCustom(resources, namespaces, objects int) (*Custom, error) {
	c := &Custom{resources: resources, namespaces: namespaces, objects: objects}
	var err error
	c.host, err = newHost(true)
	return c, err
}

// Accepted returns the number of connections so far.
func (c *Custom) Accepted() int { return int(c.accepted.Load()) }

// Run serves until ctx ends, and then returns nil.
func (c *Custom) Run(ctx context.Context) error { return c.run(ctx, c.serve, c.count) }

func (c *Custom) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		c.accepted.Add(1)
	}
}

// find returns the number of the collection at a path, or -1.
func (c *Custom) find(path string) int {
	rest, _ := strings.CutPrefix(path, "/apis/"+load.CustomGroup+"/"+load.CustomVersion+"/")
	for i := range max(c.resources, c.namespaces) {
		if c.namespaces == 0 && rest == load.CustomPlural(i) ||
			c.namespaces != 0 && rest == "namespaces/"+load.CustomNamespace(i)+"/"+load.CustomPlural(0) {
			return i
		}
	}
	return -1
}

// place returns the namespace of an object of a collection, and its resource.
func (c *Custom) place(number, i int) (namespace, resource int) {
	if c.namespaces != 0 {
		return number, 0
	}
	return i % 5, number
}

// serve answers a list or a watch of one of the collections, in JSON.
func (c *Custom) serve(w http.ResponseWriter, r *http.Request) {
	number := c.find(r.URL.Path)
	if number < 0 || r.Method != http.MethodGet {
		http.Error(w, fmt.Sprintf("this server only lists and watches its custom resources: %s %s", r.Method, r.URL), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	if !boolean(q.Get("watch")) {
		_, _ = w.Write(c.list(number)) // the client has gone, so the error does not matter
		return
	}
	if boolean(q.Get("sendInitialEvents")) {
		if _, err := w.Write(c.initial(number)); err != nil {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// kind returns the kind of the objects of a collection.
func (c *Custom) kind(number int) string {
	_, resource := c.place(number, 0)
	return load.CustomKind(resource)
}

func (c *Custom) list(number int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":"%s/%s","kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[`,
		load.CustomGroup, load.CustomVersion, c.kind(number), load.FirstVersion)
	for i := range c.objects {
		if i > 0 {
			b.WriteByte(',')
		}
		namespace, resource := c.place(number, i)
		b.Write(load.CustomIn(namespace, resource, i))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func (c *Custom) initial(number int) []byte {
	var b bytes.Buffer
	for i := range c.objects {
		namespace, resource := c.place(number, i)
		fmt.Fprintf(&b, `{"type":"ADDED","object":%s}`+"\n", load.CustomIn(namespace, resource, i))
	}
	fmt.Fprintf(&b, `{"type":"BOOKMARK","object":{"apiVersion":"%s/%s","kind":%q,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n",
		load.CustomGroup, load.CustomVersion, c.kind(number), load.FirstVersion)
	return b.Bytes()
}
