package e2e_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/e2e/proxy"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// adminConfig returns the configuration of a direct connection to the server.
func adminConfig() apiclient.Config {
	return apiclient.Config{Host: server.URL(), BearerToken: apiclient.NewSecret(cluster.AdminToken), TLS: apiclient.TLS{CAData: server.CA()}}
}

func newClient(t *testing.T, config apiclient.Config) *apiclient.Client {
	t.Helper()
	c := must.Get(apiclient.New(config))(t)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// startProxy runs a proxy in front of the API server until the test ends, and returns the configuration of a connection
// through it.
func startProxy(t *testing.T) (*proxy.Proxy, apiclient.Config) {
	t.Helper()
	p := must.Get(proxy.Listen(server.Address()))(t)
	fixture.Start(t, p.Run)
	config := adminConfig()
	config.Host = "https://" + p.Address()
	return p, config
}

// widget is a custom resource with all of its fields, as a controller declares it.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              widgetSpec   `json:"spec"`
	Status            widgetStatus `json:"status,omitzero"`
}

type widgetSpec struct {
	Size  int    `json:"size"`
	Color string `json:"color,omitempty"`
}

type widgetStatus struct {
	Ready int `json:"ready"`
}

// sighting has only the key and the size of a widget.
type sighting struct {
	Metadata struct {
		Namespace       string    `json:"namespace"`
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (s *sighting) GetNamespace() string       { return s.Metadata.Namespace }
func (s *sighting) GetName() string            { return s.Metadata.Name }
func (s *sighting) GetUID() types.UID          { return s.Metadata.UID }
func (s *sighting) GetResourceVersion() string { return s.Metadata.ResourceVersion }

// contextWithoutEnd returns a context for clean-ups, which run after the test's context has ended.
func contextWithoutEnd(t *testing.T) context.Context {
	return context.WithoutCancel(t.Context())
}
