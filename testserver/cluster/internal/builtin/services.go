package builtin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/leatproject/leat/testserver/internal/object"
)

// services gives Services their cluster IPs and node ports. kube-apiserver does this in the storage of Services, beside
// the strategy. The cluster has only IPv4 addresses.
type services struct {
	addresses, ports pool
}

// The ranges are the defaults of kube-apiserver. Values below the first dynamic one are only given on request, as long
// as there are others.
const (
	networkSize, firstDynamicAddress = 256, 17
	firstPort, lastPort              = 30000, 32767
	firstDynamicPort                 = 30086
)

// network is the range of cluster IPs. Its first and last addresses are not used.
var network = netip.MustParsePrefix("10.0.0.0/24")

func newServices() *services {
	return &services{
		addresses: pool{first: 1, last: networkSize - 2, dynamic: firstDynamicAddress},
		ports:     pool{first: firstPort, last: lastPort, dynamic: firstDynamicPort},
	}
}

// begin implements beginner: it sets the addresses and ports of a Service. It takes none: two Services may get the same
// ones at the same time, and Claim then rejects the second.
func (s *services) begin(obj, before runtime.Object) error {
	svc, old := obj.(*core.Service), (*core.Service)(nil)
	if before != nil {
		old = before.(*core.Service)
		keepAllocated(svc, old)
	}
	alignAddresses(svc, old)
	if svc.Spec.Type == core.ServiceTypeExternalName {
		return nil
	}
	errs := setFamilies(svc, old)
	if len(errs) == 0 {
		errs = s.setAddress(svc)
	}
	if len(errs) == 0 {
		errs = s.setPorts(svc)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(core.Kind("Service"), svc.Name, errs)
	}
	return s.setHealthPort(svc)
}

var specPath = field.NewPath("spec")

// keepAllocated fills in what an update omits, because clients send manifests without allocated values.
func keepAllocated(svc, old *core.Service) {
	if svc.Spec.ClusterIP == "" && svc.Spec.Type != core.ServiceTypeExternalName && old.Spec.Type != core.ServiceTypeExternalName {
		svc.Spec.ClusterIP = old.Spec.ClusterIP
		svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
	if needsHealthPort(svc) && needsHealthPort(old) && svc.Spec.HealthCheckNodePort == 0 {
		svc.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
	if !mayHavePorts(svc) || !mayHavePorts(old) {
		return
	}
	known, used := map[string]int32{}, map[int32]bool{}
	for _, p := range old.Spec.Ports {
		known[p.Name] = p.NodePort
	}
	for _, p := range svc.Spec.Ports {
		used[p.NodePort] = true
	}
	for i := range svc.Spec.Ports {
		if p := &svc.Spec.Ports[i]; p.NodePort == 0 && !used[known[p.Name]] {
			p.NodePort = known[p.Name]
			used[p.NodePort] = true
		}
	}
}

// alignAddresses makes clusterIP the first of clusterIPs. In an update, the field that changed counts.
func alignAddresses(svc, old *core.Service) {
	spec := &svc.Spec
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	changed, changedAll := spec.ClusterIP != old.Spec.ClusterIP, !slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs)
	switch {
	case changed && spec.ClusterIP == "":
		if !changedAll {
			spec.ClusterIPs = nil
		}
	case changed && (!changedAll || len(spec.ClusterIPs) == 0):
		rest := []string(nil)
		if len(spec.ClusterIPs) > 1 {
			rest = spec.ClusterIPs[1:]
		}
		spec.ClusterIPs = append([]string{spec.ClusterIP}, rest...)
	case changedAll && !changed && len(spec.ClusterIPs) == 0:
		spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
}

// setFamilies sets the families of the addresses. A Service without addresses and selector may have both families.
func setFamilies(svc, old *core.Service) field.ErrorList {
	spec := &svc.Spec
	errs := validation.ValidateServiceClusterIPsRelatedFields(svc, old)
	if len(errs) > 0 {
		return errs
	}
	open := spec.ClusterIP == core.ClusterIPNone && len(spec.Selector) == 0
	for i, ip := range spec.ClusterIPs {
		if strings.Contains(ip, ":") {
			errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(i), spec.ClusterIPs, "IPv6 is not configured on this cluster"))
		}
	}
	if p := spec.IPFamilyPolicy; p != nil && *p == core.IPFamilyPolicyRequireDualStack && !open {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilyPolicy"), p, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range spec.IPFamilies {
		if family == core.IPv6Protocol && !open {
			errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	policy := core.IPFamilyPolicySingleStack
	if open && len(spec.IPFamilies) != 1 {
		policy = core.IPFamilyPolicyRequireDualStack
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = &policy
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
	}
	if open && len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != core.IPFamilyPolicySingleStack {
		second := core.IPv6Protocol
		if spec.IPFamilies[0] == core.IPv6Protocol {
			second = core.IPv4Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, second)
	}
	return errs
}

// setAddress chooses the cluster IP, or checks the one that the client wants.
func (s *services) setAddress(svc *core.Service) field.ErrorList {
	spec, holder := &svc.Spec, string(svc.UID)
	switch spec.ClusterIP {
	case core.ClusterIPNone:
		return nil
	case "":
		n, ok := s.addresses.pick(holder, "address")
		if !ok {
			return field.ErrorList{field.InternalError(specPath.Child("clusterIPs"), fmt.Errorf("failed to allocate a serviceIP: range is full"))}
		}
		spec.ClusterIP = address(n).String()
		spec.ClusterIPs = []string{spec.ClusterIP}
		return nil
	}
	ip, err := netip.ParseAddr(spec.ClusterIP)
	if err != nil {
		return nil // the strategy rejects it
	}
	why := ""
	switch n, ok := number(ip); {
	case !ok || !s.addresses.contains(n):
		why = "the provided network does not match the current range"
	case !s.addresses.free(n, holder):
		why = "provided IP is already allocated"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(specPath.Child("clusterIPs"), spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %s", ip, why))}
}

// address returns the address with a number in the network.
func address(n int32) netip.Addr {
	bytes := network.Addr().As4()
	bytes[3] = byte(n)
	return netip.AddrFrom4(bytes)
}

// number returns the number of an address in the network.
func number(ip netip.Addr) (n int32, ok bool) {
	if !network.Contains(ip) {
		return 0, false
	}
	return int32(ip.As4()[3]), true
}

func mayHavePorts(svc *core.Service) bool {
	return svc.Spec.Type == core.ServiceTypeNodePort || svc.Spec.Type == core.ServiceTypeLoadBalancer
}

func needsPorts(svc *core.Service) bool {
	wanted := svc.Spec.AllocateLoadBalancerNodePorts
	return svc.Spec.Type == core.ServiceTypeNodePort || svc.Spec.Type == core.ServiceTypeLoadBalancer && (wanted == nil || *wanted)
}

func needsHealthPort(svc *core.Service) bool {
	return svc.Spec.Type == core.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == core.ServiceExternalTrafficPolicyLocal
}

// setPorts checks the node ports that the client wants, then chooses the others. Ports of two protocols with the same
// number have the same node port.
func (s *services) setPorts(svc *core.Service) field.ErrorList {
	if !mayHavePorts(svc) {
		return nil
	}
	holder := string(svc.UID)
	for i, p := range svc.Spec.Ports {
		if err := s.checkPort(p.NodePort, holder); p.NodePort != 0 && err != nil {
			return field.ErrorList{field.Invalid(specPath.Child("ports").Index(i).Child("nodePort"), p.NodePort, err.Error())}
		}
	}
	if !needsPorts(svc) {
		return nil
	}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if p.NodePort != 0 {
			continue
		}
		if p.NodePort = sharedPort(svc, *p); p.NodePort != 0 {
			continue
		}
		n, ok := s.ports.pick(holder, fmt.Sprint("port ", i), nodePorts(svc)...)
		if !ok {
			return field.ErrorList{field.InternalError(specPath.Child("ports").Index(i).Child("nodePort"), fmt.Errorf("failed to allocate a nodePort: range is full"))}
		}
		p.NodePort = n
	}
	return nil
}

// nodePorts returns the node ports of a Service, and zeros.
func nodePorts(svc *core.Service) []int32 {
	out := []int32{svc.Spec.HealthCheckNodePort}
	for _, p := range svc.Spec.Ports {
		out = append(out, p.NodePort)
	}
	return out
}

// sharedPort returns the node port of the same port of another protocol, or 0.
func sharedPort(svc *core.Service, p core.ServicePort) int32 {
	shared := int32(0)
	for _, other := range svc.Spec.Ports {
		if other.NodePort != 0 && other.Port == p.Port && other.Protocol != p.Protocol {
			shared = other.NodePort
		}
	}
	for _, other := range svc.Spec.Ports {
		if other.NodePort == shared && other.Protocol == p.Protocol {
			return 0
		}
	}
	return shared
}

func (s *services) checkPort(port int32, holder string) error {
	switch {
	case !s.ports.contains(port):
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d", firstPort, lastPort)
	case !s.ports.free(port, holder):
		return fmt.Errorf("provided port is already allocated")
	}
	return nil
}

func (s *services) setHealthPort(svc *core.Service) error {
	if !needsHealthPort(svc) {
		return nil
	}
	holder := string(svc.UID)
	if port := svc.Spec.HealthCheckNodePort; port != 0 {
		if err := s.checkPort(port, holder); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %d: %w", port, err))
		}
		return nil
	}
	n, ok := s.ports.pick(holder, "health", nodePorts(svc)...)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort: range is full"))
	}
	svc.Spec.HealthCheckNodePort = n
	return nil
}

// claim implements beginner.
func (s *services) claim(before, after object.Tree) bool {
	holder := object.TextAt(after, "metadata", "uid")
	if after == nil {
		holder = object.TextAt(before, "metadata", "uid")
	}
	addresses, ports := allocated(after)
	if !s.addresses.allFree(addresses, holder) || !s.ports.allFree(ports, holder) {
		return false
	}
	s.addresses.take(addresses, holder)
	s.ports.take(ports, holder)
	return true
}

// allocated returns the numbers that a stored Service holds.
func allocated(tree object.Tree) (addresses, ports []int32) {
	spec := object.MapAt(tree, "spec")
	for _, text := range object.StringsAt(spec, "clusterIPs") {
		if ip, err := netip.ParseAddr(text); err == nil {
			if n, ok := number(ip); ok {
				addresses = append(addresses, n)
			}
		}
	}
	if n, ok := object.IntAt(spec, "healthCheckNodePort"); ok && n != 0 {
		ports = append(ports, int32(n))
	}
	for _, item := range object.SliceAt(spec, "ports") {
		port, _ := item.(object.Tree)
		if n, ok := object.IntAt(port, "nodePort"); ok && n != 0 {
			ports = append(ports, int32(n))
		}
	}
	return addresses, ports
}

// reset implements beginner.
func (s *services) reset() {
	s.addresses.clear()
	s.ports.clear()
}
