package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/webhook"
)

// manifests are what a project has in its directory for webhooks.
const manifests = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mills}
webhooks:
- name: mutate.leat.example
  clientConfig: {caBundle: Cg==, service: {namespace: system, name: webhook-service, path: /mutate}}
  rules: [{apiGroups: [leat.example], apiVersions: [v1], operations: [CREATE], resources: [wheels]}]
  admissionReviewVersions: [v1]
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: mills}
webhooks:
- name: validate.leat.example
  clientConfig: {service: {namespace: system, name: webhook-service, path: /validate}}
  rules: [{apiGroups: [leat.example], apiVersions: [v1], operations: [CREATE], resources: [wheels]}]
  admissionReviewVersions: [v1]
  sideEffects: None
`

// part is a Wheel in both versions.
type part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Made              string `json:"made,omitempty"`
}

type validator struct{ webhook.Validator[*part] }

func (validator) ValidateCreate(_ context.Context, w *part) ([]string, error) {
	if w.Name == "square" {
		return nil, errors.New("a wheel is round")
	}
	return nil, nil
}

// TestWebhooksOfEnvironment serves webhooks of leat in the way of a suite for envtest: from the directory of a project,
// with the address and the certificate of the environment.
func TestWebhooksOfEnvironment(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(manifests), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [manifests.yaml]\n"), 0o600))
	crd := wheels("v1", true)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: "system", Name: "webhook-service", Path: new("/convert-wheel"),
			}},
		},
	}
	env := &cluster.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, WebhookInstallOptions: cluster.WebhookInstallOptions{Paths: []string{dir}},
	}
	config, err := env.Start()
	require.NoError(t, err)
	stopped := false
	defer func() { require.True(t, stopped || env.Stop() == nil) }()
	o := &env.WebhookInstallOptions
	require.Len(t, o.MutatingWebhooks, 1)
	require.Len(t, o.ValidatingWebhooks, 1)
	require.NotNil(t, crd.Spec.Conversion.Webhook.ClientConfig.Service, "the definition of the caller does not change")
	serve(t, o)

	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	in := func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "leat.example", Version: version, Resource: "wheels"}).Namespace("default")
	}
	wheel := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "leat.example/v1", "kind": "Wheel", "metadata": map[string]any{"name": name},
		}}
	}
	made, err := in("v1").Create(t.Context(), wheel("round"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "by default", made.Object["made"])
	_, err = in("v1").Create(t.Context(), wheel("square"), metav1.CreateOptions{})
	require.ErrorContains(t, err, `admission webhook "validate.leat.example" denied the request: a wheel is round`)
	other, err := in("v2").Get(t.Context(), "round", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "by default, converted", other.Object["made"])

	require.DirExists(t, o.LocalServingCertDir)
	require.NoError(t, env.Stop())
	stopped = true
	require.NoDirExists(t, o.LocalServingCertDir)
}

// serve serves the webhooks of Wheels until the test ends.
func serve(t *testing.T, o *cluster.WebhookInstallOptions) {
	resource := api.Resource{Group: "leat.example", Version: "v1", Kind: "Wheel", Plural: "wheels", Namespaced: true}
	server := must.Get(webhook.New(webhook.Options{
		Address:  fmt.Sprintf("%s:%d", o.LocalServingHost, o.LocalServingPort),
		CertFile: filepath.Join(o.LocalServingCertDir, "tls.crt"), KeyFile: filepath.Join(o.LocalServingCertDir, "tls.key"),
	}))(t)
	server.Handle("/mutate", webhook.Admission[*part]{Resource: resource, Default: webhook.DefaultFunc[*part](
		func(_ context.Context, w *part) error {
			w.Made = "by default"
			return nil
		})})
	server.Handle("/validate", webhook.Admission[*part]{Resource: resource, Validate: validator{}})
	convert := func(w *part) (*part, error) {
		w.Made += ", converted"
		return w, nil
	}
	server.Handle("/convert-wheel", webhook.Conversion[*part]{
		Hub: resource, Spokes: []webhook.Spoke[*part]{webhook.NewSpoke("v2", convert, convert)},
	})
	fixture.Start(t, server.Run)
	<-server.Synced()
}

// TestOwnCertificate checks that a test with a certificate of its own may listen before Start.
func TestOwnCertificate(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	other := must.Get(cluster.New(cluster.Options{Server: testserver.Options{TLS: true}}))(t)
	o := cluster.WebhookInstallOptions{
		LocalServingPort: l.Addr().(*net.TCPAddr).Port, LocalServingCAData: other.Server.CA(), LocalServingCertDir: t.TempDir(),
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{hook("own.leat.example")},
	}
	env := &cluster.Environment{WebhookInstallOptions: o}
	must.Get(env.Start())(t)
	got := env.WebhookInstallOptions.ValidatingWebhooks[0].Webhooks[0].ClientConfig
	require.Equal(t, "https://"+l.Addr().String(), *got.URL)
	require.Equal(t, o.LocalServingCAData, got.CABundle)
	require.NoError(t, env.Stop())
	require.Equal(t, o.LocalServingCertDir, env.WebhookInstallOptions.LocalServingCertDir)
	require.DirExists(t, o.LocalServingCertDir)
}

// TestClientConfigs checks what Start makes of the addresses of webhooks.
func TestClientConfigs(t *testing.T) {
	service := &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b", Path: new("/c")}
	resolve := func(string, string, int32) (string, error) { return "localhost:1", nil }
	for name, tc := range map[string]struct {
		options cluster.WebhookInstallOptions
		resolve func(string, string, int32) (string, error)
		config  admissionregistrationv1.WebhookClientConfig
		url     string
		service bool
	}{
		"a service": {
			config: admissionregistrationv1.WebhookClientConfig{Service: service}, url: "https://127.0.0.1:%d/c",
		},
		"a service without a path": {
			config: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}},
			url:    "https://127.0.0.1:%d",
		},
		"every address": {
			options: cluster.WebhookInstallOptions{LocalServingHost: "0.0.0.0"},
			config:  admissionregistrationv1.WebhookClientConfig{Service: service}, url: "https://127.0.0.1:%d/c",
		},
		"an external name": {
			options: cluster.WebhookInstallOptions{LocalServingHostExternalName: "hooks.example"},
			config:  admissionregistrationv1.WebhookClientConfig{Service: service}, url: "https://hooks.example:%d/c",
		},
		"a url": {
			config: admissionregistrationv1.WebhookClientConfig{URL: new("https://example.com/d")}, url: "https://example.com/d",
		},
		"services that the options resolve": {
			resolve: resolve, config: admissionregistrationv1.WebhookClientConfig{Service: service}, service: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			none := admissionregistrationv1.SideEffectClassNone
			tc.options.MutatingWebhooks = []*admissionregistrationv1.MutatingWebhookConfiguration{{
				ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
				Webhooks: []admissionregistrationv1.MutatingWebhook{{
					Name: "hook.leat.example", ClientConfig: tc.config, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				}},
			}}
			env := &cluster.Environment{Options: cluster.Options{WebhookService: tc.resolve}, WebhookInstallOptions: tc.options}
			must.Get(env.Start())(t)
			defer func() { require.NoError(t, env.Stop()) }()
			o := env.WebhookInstallOptions
			stored := must.Get(env.Cluster.Server.Get(api.Resource{
				Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration", Plural: "mutatingwebhookconfigurations",
			}, api.Key{Name: "hooks"}))(t)
			var out admissionregistrationv1.MutatingWebhookConfiguration
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &out))
			got := out.Webhooks[0].ClientConfig
			require.Equal(t, tc.service, got.Service != nil)
			if tc.service {
				require.Empty(t, got.CABundle)
				return
			}
			want := tc.url
			if tc.config.URL == nil {
				want = fmt.Sprintf(want, o.LocalServingPort)
			}
			require.Equal(t, want, *got.URL)
			require.Equal(t, o.LocalServingCAData, got.CABundle)
		})
	}
}

type (
	hubMill struct {
		apiextensionsv1.CustomResourceDefinition
	} // any type with DeepCopyObject
	spokeMill struct {
		apiextensionsv1.CustomResourceDefinition
	}
	plainMill struct {
		apiextensionsv1.CustomResourceDefinition
	}
	// aHub is what controller-runtime's conversion.Hub is.
	aHub interface {
		runtime.Object
		Hub()
	}
)

func (*hubMill) Hub()                     {}
func (*spokeMill) ConvertTo(aHub) error   { return nil }
func (*spokeMill) ConvertFrom(aHub) error { return nil }

// TestConvertibleTypes checks that the definitions of types with conversions of controller-runtime get a webhook.
func TestConvertibleTypes(t *testing.T) {
	v1 := schema.GroupVersionKind{Group: "leat.example", Version: "v1", Kind: "Wheel"}
	v2 := schema.GroupVersionKind{Group: "leat.example", Version: "v2", Kind: "Wheel"}
	for name, tc := range map[string]struct {
		types   map[schema.GroupVersionKind]runtime.Object
		all, is bool
	}{
		"a hub and a spoke":      {types: map[schema.GroupVersionKind]runtime.Object{v1: &hubMill{}, v2: &spokeMill{}}, is: true},
		"a hub and another type": {types: map[schema.GroupVersionKind]runtime.Object{v1: &hubMill{}, v2: &plainMill{}}},
		"two hubs":               {types: map[schema.GroupVersionKind]runtime.Object{v1: &hubMill{}, v2: &hubMill{}}},
		"one version":            {types: map[schema.GroupVersionKind]runtime.Object{v1: &hubMill{}}},
		"no types":               {},
		"no types, for all":      {all: true, is: true},
	} {
		t.Run(name, func(t *testing.T) {
			types := runtime.NewScheme()
			for kind, o := range tc.types {
				types.AddKnownTypeWithName(kind, o)
			}
			env := &cluster.Environment{
				CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)}, Scheme: types,
				WebhookInstallOptions: cluster.WebhookInstallOptions{IgnoreSchemeConvertible: tc.all},
			}
			must.Get(env.Start())(t)
			defer func() { require.NoError(t, env.Stop()) }()
			conversion := env.CRDs[0].Spec.Conversion
			require.Equal(t, tc.is, conversion != nil)
			if tc.is {
				require.Equal(t, fmt.Sprintf("https://127.0.0.1:%d/convert", env.WebhookInstallOptions.LocalServingPort), *conversion.Webhook.ClientConfig.URL)
			}
		})
	}
}
