package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWatchTakesEveryName checks that leat watch accepts the names that kubectl accepts.
func TestWatchTakesEveryName(t *testing.T) {
	path := serving(t)
	for name, synced := range map[string]string{
		"po": "pods", "pod": "pods", "Pod": "pods", "pods.v1": "pods", "deploy": "deployments.apps", "deployment": "deployments.apps",
		"deploy.apps": "deployments.apps", "deployments.v1.apps": "deployments.apps", "no": "nodes", "crds": "customresourcedefinitions.apiextensions.k8s.io",
	} {
		out, errs := newOutput(), newOutput()
		require.Zero(t, run(t.Context(), []string{"watch", name, "-A", "--once", "--kubeconfig", path}, out, errs), errs)
		require.Contains(t, out.String(), "SYNCED    "+synced+" (0)", name)
	}
	for name, says := range map[string]string{
		"pdos":            `leat: unknown resource "pdos", did you mean "pods"?` + "\n",
		"deployments.aps": `leat: unknown resource "deployments.aps", did you mean "deployments.apps"?` + "\n",
		"certificates":    `leat: unknown resource "certificates"` + "\n",
	} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), []string{"watch", name, "--kubeconfig", path}, out, errs))
		require.Equal(t, says, errs.String())
	}
}
