package aggregation

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// report writes why an APIService with a Service is not available.
func (a *Aggregator) report(s service) error {
	reason, message := a.obstacle(s)
	wanted := object.Tree{"type": "Available", "status": "False", "reason": reason, "message": message}
	now := time.Now().UTC().Format(time.RFC3339)
	wanted["lastTransitionTime"] = now
	if have := object.Condition(object.MapAt(s.tree, "status"), "Available"); have["status"] == wanted["status"] {
		if have["reason"] == reason && have["message"] == message {
			return nil
		}
		wanted["lastTransitionTime"] = have["lastTransitionTime"] // another reason is no transition
	}
	a.store.Lock()
	defer a.store.Unlock()
	c := a.store.Collection(apiServices)
	if c.Get(s.record.Key) != s.record {
		return nil // the next sync sees the change
	}
	tree := s.record.Tree()
	tree["status"] = object.Tree{"conditions": []any{wanted}}
	meta := object.Metadata(tree)
	var managers []any
	for _, m := range object.SliceAt(meta, "managedFields") {
		if m, ok := m.(object.Tree); ok && (m["manager"] != manager || m["subresource"] != "status") {
			managers = append(managers, m)
		}
	}
	meta["managedFields"] = append(managers, object.Tree{
		"manager": manager, "operation": "Update", "apiVersion": "apiregistration.k8s.io/v1", "time": now,
		"fieldsType": "FieldsV1", "subresource": "status",
		"fieldsV1": object.Tree{"f:status": object.Tree{"f:conditions": object.Tree{
			".": object.Tree{}, `k:{"type":"Available"}`: object.Tree{
				".": object.Tree{}, "f:lastTransitionTime": object.Tree{}, "f:message": object.Tree{}, "f:reason": object.Tree{},
				"f:status": object.Tree{}, "f:type": object.Tree{},
			},
		}}},
	})
	if _, err := a.store.Put(c, s.record, tree); err != nil {
		return fmt.Errorf("aggregation: write the status of %s: %w", s.record.Key.Name, err)
	}
	return nil
}

// manager is the writer of the status.
const manager = "kube-apiserver"

// obstacle returns why an APIService is not available, in the words of kube-apiserver: its Service is missing, does not
// have the port, has no endpoints, or does not answer.
func (a *Aggregator) obstacle(s service) (reason, message string) {
	namespace, name := object.StringAt(s.reference, "namespace"), object.StringAt(s.reference, "name")
	port, ok := object.IntAt(s.reference, "port")
	if !ok {
		port = 443
	}
	named := fmt.Sprintf("service/%s in %q", name, namespace)
	r := a.view(collections[2]).Get(api.Key{Namespace: namespace, Name: name})
	if r == nil {
		return "ServiceNotFound", named + " is not present"
	}
	spec := object.MapAt(r.Tree(), "spec")
	host := net.JoinHostPort(object.StringAt(spec, "clusterIP"), strconv.FormatInt(port, 10))
	if kind := object.StringAt(spec, "type"); kind == "ExternalName" {
		host = net.JoinHostPort(object.StringAt(spec, "externalName"), strconv.FormatInt(port, 10))
	} else if cmp.Or(kind, "ClusterIP") == "ClusterIP" {
		portName, found := portOf(spec, port)
		if !found {
			return "ServicePortError", fmt.Sprintf("%s is not listening on port %d", named, port)
		}
		switch slices, ready := a.endpoints(namespace, name, portName); {
		case !slices:
			return "EndpointsNotFound", "cannot find endpointslices for " + named
		case !ready:
			return "MissingEndpoints", fmt.Sprintf("endpointslices for %s have no addresses with port name %q", named, portName)
		}
	}
	return "FailedDiscoveryCheck", fmt.Sprintf("failing or missing response from https://%s/apis/%s: the test server does not connect to services",
		host, s.gv)
}

// portOf returns the name of a port of a Service.
func portOf(spec object.Tree, number int64) (name string, found bool) {
	for _, p := range object.SliceAt(spec, "ports") {
		p, _ := p.(object.Tree)
		if n, _ := object.IntAt(p, "port"); n == number {
			return object.StringAt(p, "name"), true
		}
	}
	return "", false
}

// endpoints reports whether a Service has slices, and whether one of them has an address that is ready behind a port.
func (a *Aggregator) endpoints(namespace, service, port string) (slices, ready bool) {
	for r := range a.view(collections[3]).All() {
		tree := r.Tree()
		if r.Key.Namespace != namespace || object.Labels(object.Metadata(tree))["kubernetes.io/service-name"] != service {
			continue
		}
		slices = true
		has := false
		for _, p := range object.SliceAt(tree, "ports") {
			p, _ := p.(object.Tree)
			has = has || object.StringAt(p, "name") == port
		}
		for _, e := range object.SliceAt(tree, "endpoints") {
			e, _ := e.(object.Tree)
			if down := object.MapAt(e, "conditions")["ready"] == false; has && !down {
				ready = true
			}
		}
	}
	return slices, ready
}
