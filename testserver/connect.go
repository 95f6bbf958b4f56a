package testserver

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/store"
	"github.com/leatproject/leat/testserver/internal/wire"
)

const proxySubresource = "proxy"

// connecting returns the handler of a subresource that kube-apiserver forwards to a node, a pod or a service, or nil.
// Nothing listens there, so each handler returns the error that kube-apiserver gives in this case.
func (x *call) connecting() func() error {
	stream := x.http.Method == http.MethodGet || x.http.Method == http.MethodPost
	switch name := x.request.Subresource; {
	case x.def.Untyped:
	case slices.Contains([]string{"attach", "exec", "portforward"}, name) && stream:
		return x.stream
	case name == proxySubresource:
		return map[string]func() error{"nodes": x.proxyNode, "pods": x.proxyPod, "services": x.proxyService}[x.def.Plural]
	}
	return nil
}

// stream answers attach, exec and portforward.
func (x *call) stream() error {
	x.store.Lock()
	pod, err := x.existing()
	x.store.Unlock()
	if err != nil {
		return err
	}
	if x.request.Subresource != "portforward" {
		if _, err := containerOf(pod, x.request.Query.Get("container")); err != nil {
			return err
		}
	}
	node, err := x.nodeOf(pod)
	if err != nil {
		return err
	}
	if node == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Key.Name))
	}
	return wire.Error(http.StatusInternalServerError, "", fmt.Sprintf("error dialing backend: node %s has no kubelet", node))
}

// nodeOf returns the node of a pod, or "" if it has none. It fails if there is no such node.
func (x *call) nodeOf(pod *store.Record) (string, error) {
	name := object.StringAt(object.MapAt(pod.Tree(), "spec"), "nodeName")
	if name != "" && x.lookUp("", "nodes", api.Key{Name: name}) == nil {
		return "", apierrors.NewNotFound(podResource.GroupResource(), name) // kube-apiserver names the resource of the request
	}
	return name, nil
}

// lookUp returns an object of version v1, or nil.
func (x *call) lookUp(group, plural string, key api.Key) object.Tree {
	c, _, ok := x.store.Find(group, "v1", plural)
	if !ok {
		return nil
	}
	x.store.Lock()
	defer x.store.Unlock()
	r := c.Get(key)
	if r == nil {
		return nil
	}
	return r.Tree()
}

// proxied splits the name in a request to a proxy: name, name:port or scheme:name:port.
func (x *call) proxied(kind string) (key api.Key, port string, err error) {
	_, name, port, ok := utilnet.SplitSchemeNamePort(x.request.Name)
	if !ok {
		err = apierrors.NewBadRequest(fmt.Sprintf("invalid %s request %q", kind, x.request.Name))
	}
	return api.Key{Namespace: x.request.Namespace, Name: name}, port, err
}

// errUnreachable is the answer of a proxy if nothing listens.
var errUnreachable = apierrors.NewServiceUnavailable("error trying to reach service: nothing listens in this cluster")

func (x *call) proxyNode() error {
	key, _, err := x.proxied("node")
	if err == nil && x.lookUp("", "nodes", key) == nil {
		err = apierrors.NewNotFound(x.def.GroupResource(), key.Name)
	}
	if err != nil {
		return err
	}
	return errUnreachable
}

func (x *call) proxyPod() error {
	key, _, err := x.proxied("pod")
	if err != nil {
		return err
	}
	pod := x.lookUp("", "pods", key)
	if pod == nil {
		return apierrors.NewNotFound(x.def.GroupResource(), key.Name)
	}
	if ip := net.ParseIP(object.TextAt(pod, "status", "podIP")); ip == nil || !ip.IsGlobalUnicast() {
		return apierrors.NewBadRequest("address not allowed")
	}
	return errUnreachable
}

func (x *call) proxyService() error {
	key, port, err := x.proxied("service")
	if err != nil {
		return err
	}
	if number, err := strconv.ParseInt(port, 10, 64); err == nil {
		service := x.lookUp("", "services", key)
		if service == nil {
			return apierrors.NewNotFound(x.def.GroupResource(), key.Name)
		}
		if !slices.ContainsFunc(object.SliceAt(object.MapAt(service, "spec"), "ports"), func(v any) bool {
			p, _ := v.(object.Tree)
			have, _ := object.IntAt(p, "port")
			return have == number
		}) {
			return apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, key.Name))
		}
	}
	if !x.hasEndpoints(key) {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", key.Name))
	}
	return errUnreachable
}

// hasEndpoints reports whether a service has an EndpointSlice with an endpoint.
func (x *call) hasEndpoints(service api.Key) bool {
	c, _, ok := x.store.Find("discovery.k8s.io", "v1", "endpointslices")
	if !ok {
		return false
	}
	x.store.Lock()
	defer x.store.Unlock()
	for r := range c.All(service.Namespace) {
		tree := r.Tree()
		if object.Labels(object.Metadata(tree))["kubernetes.io/service-name"] == service.Name && len(object.SliceAt(tree, "endpoints")) > 0 {
			return true
		}
	}
	return false
}
