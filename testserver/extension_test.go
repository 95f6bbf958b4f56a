package testserver_test

import (
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
)

func TestEmptyExtensionChangesNothing(t *testing.T) {
	answers := func(s *testserver.Server) (all []string) {
		go func() { _ = s.Run(t.Context()) }()
		for _, path := range []string{"/api/v1", "/apis", "/version", "/openapi/v3"} {
			res := must.Get(s.Client().Get(s.URL() + path))(t)
			body := must.Get(io.ReadAll(res.Body))(t)
			require.NoError(t, res.Body.Close())
			all = append(all, res.Status+" "+string(body))
		}
		return all
	}
	plain := answers(testserver.New(testserver.Options{}))
	require.Equal(t, plain, answers(testserver.NewExtended(testserver.Options{}, extension.Extension{})))
}

// TestWithoutDefinitions restores a state of a server that has no resource for CustomResourceDefinitions.
func TestWithoutDefinitions(t *testing.T) {
	resources := slices.DeleteFunc(registry.Builtins(), func(d *registry.Definition) bool { return d.IsCRD() })
	s := testserver.NewExtended(testserver.Options{}, extension.Extension{Resources: resources})
	before := s.Snapshot()
	must.Get(s.Create(pods, pod("a")))(t)
	require.NoError(t, s.Load(s.Dump()))
	s.Inject(faults.Fault{Effect: faults.Restore{To: before}})
	require.Zero(t, s.Snapshot().Len(pods))
}
