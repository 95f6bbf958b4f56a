package controllerruntime_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leatproject/leat/e2e/conformance/controllerruntime/suite/before"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestAssets runs the suite of a project with envtest, which starts leat-server instead of etcd and kube-apiserver.
func TestAssets(t *testing.T) {
	command := exec.Command("go", "run", "./cmd/leat-server", "assets", t.TempDir())
	command.Dir = filepath.Join("..", "..", "..", "testserver", "cluster")
	folder := must.Get(command.Output())(t)
	before.Run(t, filepath.Join("suite", "mills", "config"), strings.TrimSpace(string(folder)))
}
