package controllerruntime_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

var (
	server *harness.Server
	types  = runtime.NewScheme()
	direct client.Client // without a cache
	// installed is the error of the installation of the definitions.
	installed error
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	types.AddKnownTypes(widgets, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(types, widgets)
	os.Exit(harness.Main(m, harness.Options{}, func(s *harness.Server) {
		server = s
		_, installed = envtest.InstallCRDs(s.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}})
		direct, _ = client.New(s.Config, client.Options{Scheme: types}) // fails only without a valid configuration
	}))
}
