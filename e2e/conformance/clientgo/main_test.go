package clientgo_test

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/e2e/conformance/samples"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	server *harness.Server
	client kubernetes.Interface
	mapper meta.ResettableRESTMapper
)

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, harness.Options{}, func(s *harness.Server) {
		server, client = s, s.Clientset()
		mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(s.Config)))
	}))
}

// sample is one object and its resource.
type sample struct {
	*unstructured.Unstructured
	mapping *meta.RESTMapping
	missing error // if the server does not have the resource
}

func (s sample) namespaced() bool { return s.mapping.Scope.Name() == meta.RESTScopeNameNamespace }

// label names a test of the sample.
func (s sample) label() string { return s.GetKind() + "." + s.GetAPIVersion() }

func allSamples(t *testing.T) []sample {
	t.Helper()
	objects := must.Get(samples.All(server.Namespace(t)))(t)
	var all []sample
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		all = append(all, sample{o, mapping, err})
	}
	return all
}
