package listerwatchertest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

// TestSuite runs the suite over the test server's own transport.
func TestSuite(t *testing.T) {
	listerwatchertest.Run(t, listerwatchertest.Options{SkipUndecodable: true},
		func(t *testing.T, s *testserver.Server) api.ListerWatcher[*metav1.PartialObjectMetadata] {
			c := must.Get(apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport}))(t)
			return apiclient.NewPartial[*metav1.PartialObjectMetadata](c, listerwatchertest.Pods, "")
		})
}
