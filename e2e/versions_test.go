package e2e_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModuleVersions requires the same versions as leat's own module. Otherwise this module would not test what users
// get.
func TestModuleVersions(t *testing.T) {
	here, root := required(t, "go.mod"), required(t, "../go.mod")
	for _, module := range []string{"k8s.io/apimachinery", "k8s.io/api"} {
		require.Contains(t, here, module)
		require.Contains(t, root, module)
	}
	for module, version := range here {
		if wanted, ok := root[module]; ok {
			require.Equal(t, wanted, version, "%s: e2e/go.mod and go.mod differ (go get %s@%s in e2e)", module, module, wanted)
		}
	}
}

// required returns the versions that a go.mod requires, by module. A version that replaces another one counts.
func required(t *testing.T, file string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	require.NoError(t, err)
	var parsed struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	require.NoError(t, json.Unmarshal(out, &parsed))
	versions := make(map[string]string, len(parsed.Require))
	for _, r := range parsed.Require {
		versions[r.Path] = r.Version
	}
	for _, r := range parsed.Replace {
		if r.New.Version != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}
