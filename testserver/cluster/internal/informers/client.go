package informers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typednodev1 "k8s.io/client-go/kubernetes/typed/node/v1"
)

// Client returns a client with the reads that admission plugins do when a lister does not have an object. Other methods
// panic.
func (f *Factory) Client() kubernetes.Interface { return client{factory: f} }

type (
	client struct {
		kubernetes.Interface
		factory *Factory
	}
	coreClient struct {
		typedcorev1.CoreV1Interface
		factory *Factory
	}
	namespaces struct {
		typedcorev1.NamespaceInterface
		factory *Factory
	}
	serviceAccounts struct {
		typedcorev1.ServiceAccountInterface
		factory   *Factory
		namespace string
	}
	limitRanges struct {
		typedcorev1.LimitRangeInterface
		factory   *Factory
		namespace string
	}
	nodeClient struct {
		typednodev1.NodeV1Interface
		factory *Factory
	}
	runtimeClasses struct {
		typednodev1.RuntimeClassInterface
		factory *Factory
	}
)

func (c client) CoreV1() typedcorev1.CoreV1Interface { return coreClient{factory: c.factory} }
func (c client) NodeV1() typednodev1.NodeV1Interface { return nodeClient{factory: c.factory} }

func (c coreClient) Namespaces() typedcorev1.NamespaceInterface {
	return namespaces{factory: c.factory}
}

func (c coreClient) ServiceAccounts(ns string) typedcorev1.ServiceAccountInterface {
	return serviceAccounts{factory: c.factory, namespace: ns}
}

func (c coreClient) LimitRanges(ns string) typedcorev1.LimitRangeInterface {
	return limitRanges{factory: c.factory, namespace: ns}
}

func (c nodeClient) RuntimeClasses() typednodev1.RuntimeClassInterface {
	return runtimeClasses{factory: c.factory}
}

// Get returns a namespace.
func (c namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return c.factory.Core().V1().Namespaces().Lister().Get(name)
}

// Get returns a service account.
func (c serviceAccounts) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ServiceAccount, error) {
	return c.factory.Core().V1().ServiceAccounts().Lister().ServiceAccounts(c.namespace).Get(name)
}

// List returns the limit ranges of a namespace.
func (c limitRanges) List(context.Context, metav1.ListOptions) (*corev1.LimitRangeList, error) {
	all, err := c.factory.Core().V1().LimitRanges().Lister().LimitRanges(c.namespace).List(labels.Everything())
	out := &corev1.LimitRangeList{}
	for _, item := range all {
		out.Items = append(out.Items, *item)
	}
	return out, err
}

// Get returns a runtime class.
func (c runtimeClasses) Get(_ context.Context, name string, _ metav1.GetOptions) (*nodev1.RuntimeClass, error) {
	return c.factory.Node().V1().RuntimeClasses().Lister().Get(name)
}
