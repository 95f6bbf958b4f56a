package runner

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked returns the packages that an agent is linked with, except leat's own.
func linked(t *testing.T, agent string) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./agent/"+agent)
	cmd.Dir = ".."
	output, err := cmd.Output()
	require.NoError(t, err)
	packages := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		if !strings.HasPrefix(line, "github.com/leatproject/leat/") {
			packages[strings.TrimSpace(line)] = true
		}
	}
	return packages
}

// The difference of two programs is leat's own code only if both have the same dependencies.
func TestBareLinksWhatLeatLinks(t *testing.T) {
	require.Contains(t, linked(t, "bare"), "go.uber.org/zap")
	require.Equal(t, linked(t, "leat-struct"), linked(t, "bare"))
}
