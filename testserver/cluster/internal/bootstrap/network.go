package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/testserver/internal/object"
)

const (
	network        = "10.0.0.0/24" // of cluster IPs
	serviceAddress = "10.0.0.1"
	// serverAddress is where pods would reach the server. It is an address of documentation (RFC 5737), because the
	// server listens on loopback, which endpoints must not have, or in memory.
	serverAddress = "192.0.2.1"
	serverPort    = 6443
	networkOwner  = "kubernetes-service-cidr-controller"
)

// addNetwork adds the Service of the API with its endpoints, and the range of cluster IPs with the one that the Service
// has.
func (l *list) addNetwork() {
	p := l.add("services", server, service())
	p.managers[0]["fieldsV1"] = serviceFields
	l.add("endpoints", server, endpoints())
	object.Metadata(l.add("endpointslices", server, slice()).tree)["generation"] = int64(1)
	p = l.add("servicecidrs", server, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{network}},
	})
	condition := object.Tree{"type": "Ready", "status": "True", "message": "Kubernetes default Service CIDR is ready"}
	p.managers = append(p.managers, applied(networkOwner, networkingv1.SchemeGroupVersion, condition))
	condition["reason"] = ""
	p.condition = condition
	l.add("ipaddresses", server, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: serviceAddress, Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: "IPv4", networkingv1.LabelManagedBy: "ipallocator.k8s.io",
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: "services", Namespace: metav1.NamespaceDefault, Name: "kubernetes",
		}},
	})
}

// service returns the Service of the API.
func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: serviceAddress, ClusterIPs: []string{serviceAddress},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
			Ports: []corev1.ServicePort{{
				Name: "https", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(serverPort),
			}},
		},
	}
}

// endpoints returns the endpoints of the Service.
//
//lint:ignore SA1019 kube-apiserver still writes it
func endpoints() *corev1.Endpoints {
	//lint:ignore SA1019 as above
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		//lint:ignore SA1019 as above
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: serverAddress}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: serverPort, Protocol: corev1.ProtocolTCP}},
		}},
	}
}

// slice returns the same in the newer form.
func slice() *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{serverAddress}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(serverPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
}
