package controllerruntime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/conformance/controllerruntime/suite/after"
	"github.com/leatproject/leat/e2e/conformance/controllerruntime/suite/before"
	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// The line of a suite that changes, before and after.
const (
	importBefore = `"sigs.k8s.io/controller-runtime/pkg/envtest"`
	importAfter  = `envtest "github.com/leatproject/leat/testserver/cluster"`
)

// TestReplaceEnvtest runs the suite of a project with definitions, webhooks and users. The suite uses
// cluster.Environment, or envtest.Environment if the flag is -server=real. Both suites differ in one import.
func TestReplaceEnvtest(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/envtest.md"))(t)
	require.Contains(t, string(page), importBefore)
	require.Contains(t, string(page), importAfter)
	first := must.Get(os.ReadFile("suite/before/suite.go"))(t)
	second := must.Get(os.ReadFile("suite/after/suite.go"))(t)
	require.Equal(t, string(second), strings.NewReplacer(importBefore, importAfter, "package before", "package after").Replace(string(first)))

	binaries := must.Get(harness.Binaries())(t)
	t.Setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "3m")
	run := after.Run
	if harness.IsReal() {
		run = before.Run
	}
	run(t, filepath.Join("suite", "mills", "config"), binaries)
}
