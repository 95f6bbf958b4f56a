package builtin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/object"
)

const servicesPath = "/api/v1/namespaces/default/services"

// service returns the body of a Service.
func service(name, spec string) string {
	return fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"name":%q},"spec":%s}`, name, spec)
}

func TestServicesGetAddressesAndPorts(t *testing.T) {
	inBubble(t, func(b bubble) {
		spec := func(name, spec string) object.Tree {
			return object.MapAt(b.must("POST", servicesPath, service(name, spec)), "spec")
		}
		require.Equal(t, []any{"10.0.0.7"}, spec("asked", `{"clusterIP":"10.0.0.7","ports":[{"port":80}]}`)["clusterIPs"])

		headless := spec("headless", `{"clusterIP":"None","ports":[{"port":80}]}`)
		require.Equal(t, []any{"IPv4", "IPv6"}, headless["ipFamilies"])
		require.Equal(t, "RequireDualStack", headless["ipFamilyPolicy"])
		selecting := spec("selecting", `{"clusterIP":"None","ports":[{"port":80}],"selector":{"a":"b"}}`)
		require.Equal(t, []any{"IPv4"}, selecting["ipFamilies"])
		require.Equal(t, "SingleStack", selecting["ipFamilyPolicy"])
		require.Nil(t, spec("external", `{"type":"ExternalName","externalName":"a.b"}`)["clusterIP"])
		require.Equal(t, "PreferDualStack", spec("prefer", `{"ipFamilyPolicy":"PreferDualStack","ports":[{"port":80}]}`)["ipFamilyPolicy"])

		dns := object.SliceAt(spec("dns", `{"type":"NodePort","ports":[{"name":"a","port":53,"protocol":"UDP"},{"name":"b","port":53}]}`), "ports")
		require.NotEmpty(t, object.TextAt(dns[0].(object.Tree), "nodePort"))
		require.Equal(t, dns[0].(object.Tree)["nodePort"], dns[1].(object.Tree)["nodePort"], "protocols share a node port")

		local := spec("local", `{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}]}`)
		require.NotEmpty(t, object.TextAt(local, "healthCheckNodePort"))
		none := spec("none", `{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":80}]}`)
		require.Empty(t, object.TextAt(object.SliceAt(none, "ports")[0].(object.Tree), "nodePort"))
	})
}

func TestServicesWithImpossibleAddressesAreRejected(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.must("POST", servicesPath, service("first", `{"type":"NodePort","clusterIP":"10.0.0.7","ports":[{"port":80,"nodePort":30080}]}`))
		for _, c := range []struct {
			code          int
			spec, message string
		}{
			{422, `{"clusterIP":"1.2.3.4"}`, `Service "s" is invalid: spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range`},
			{422, `{"clusterIP":"10.0.0.255"}`, `Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.255"]: failed to allocate IP 10.0.0.255: the provided network does not match the current range`},
			{422, `{"clusterIP":"10.0.0.7"}`, `Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated`},
			{422, `{"clusterIP":"fd00::1"}`, `Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster`},
			{422, `{"clusterIPs":["10.0.0.9"]}`, "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: must be empty when `clusterIP` is not specified"},
			{422, `{"ipFamilies":["IPv6"]}`, `Service "s" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
			{422, `{"ipFamilyPolicy":"RequireDualStack"}`, `Service "s" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
			{422, `{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}`, `Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`},
			{422, `{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}`, `Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`},
			{
				500, `{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30080,"ports":[{"port":80}]}`,
				`Internal error occurred: failed to allocate requested HealthCheck NodePort 30080: provided port is already allocated`,
			},
		} {
			spec := c.spec
			if object.TextAt(object.Tree{"s": spec}, "s")[1:7] != `"type"` {
				spec = `{"ports":[{"port":80}],` + spec[1:]
			}
			code, status := b.send("POST", servicesPath, service("s", spec))
			require.Equal(t, c.code, code, spec)
			require.Equal(t, c.message, status["message"])
		}
	})
}

func TestServicesKeepWhatTheyHoldAndReleaseIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		first := b.must("POST", servicesPath, service("a", `{"type":"NodePort","ports":[{"port":80}]}`))
		port := object.TextAt(object.SliceAt(object.MapAt(first, "spec"), "ports")[0].(object.Tree), "nodePort")
		address := object.TextAt(first, "spec", "clusterIP")

		again := b.must("PUT", servicesPath+"/a", service("a", `{"type":"NodePort","ports":[{"port":82}]}`))
		require.Equal(t, address, object.TextAt(again, "spec", "clusterIP"))
		require.Equal(t, port, object.TextAt(object.SliceAt(object.MapAt(again, "spec"), "ports")[0].(object.Tree), "nodePort"))
		code, status := b.send("PUT", servicesPath+"/a", service("a", `{"type":"NodePort","clusterIP":"10.0.0.44","ports":[{"port":82}]}`))
		require.Equal(t, http.StatusUnprocessableEntity, code)
		require.Contains(t, status["message"], `spec.clusterIPs[0]: Invalid value: ["10.0.0.44"]: may not change once set`)

		b.must("PUT", servicesPath+"/a", service("a", `{"type":"ExternalName","externalName":"a.b"}`))
		b.must("POST", servicesPath, service("b", `{"type":"NodePort","clusterIP":"`+address+`","ports":[{"port":80,"nodePort":`+port+`}]}`))
		b.must("DELETE", servicesPath+"/b", "")
		b.must("POST", servicesPath+"?dryRun=All", service("c", `{"clusterIP":"`+address+`","ports":[{"port":80}]}`))
		b.must("POST", servicesPath, service("c", `{"clusterIP":"`+address+`","ports":[{"port":80}]}`))
	})
}

func TestAFullRangeIsAnError(t *testing.T) {
	inBubble(t, func(b bubble) {
		seen := map[string]bool{}
		for i := range 254 {
			created := b.must("POST", servicesPath, service(fmt.Sprint("s", i), `{"ports":[{"port":80}]}`))
			seen[object.TextAt(created, "spec", "clusterIP")] = true
		}
		require.Len(t, seen, 254)
		code, _ := b.send("POST", servicesPath, service("last", `{"ports":[{"port":80}]}`))
		require.GreaterOrEqual(t, code, 400)

		services := api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}
		snapshot := b.server.Snapshot()
		b.must("DELETE", servicesPath+"/s7", "")
		b.server.Inject(faults.Fault{Effect: faults.Restore{To: snapshot}})
		_, err := b.server.Get(services, api.Key{Namespace: "default", Name: "s7"})
		require.NoError(t, err)
		code, _ = b.send("POST", servicesPath, service("last", `{"ports":[{"port":80}]}`))
		require.GreaterOrEqual(t, code, 400, "a restored service holds its address again")
	})
}
