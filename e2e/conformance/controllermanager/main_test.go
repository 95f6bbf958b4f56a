package controllermanager_test

import (
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

var (
	server *harness.Server
	client kubernetes.Interface
)

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, harness.Options{ControllerManager: true}, func(s *harness.Server) {
		server, client = s, s.Clientset()
	}))
}
