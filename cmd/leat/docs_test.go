package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfTheDocuments runs each leat show of two documents on a recording of the demonstration.
func TestCommandsOfTheDocuments(t *testing.T) {
	path := demoFile(t)
	words := strings.NewReplacer("shop.rec", path, "dump.rec", path, "12:03:05", "+0s", "12:04:00", "+300ms",
		"leases --object shop/neighbours-k4qz7w2m5x3p6rta", "replicasets --object default/web",
		"leases --object shop/neighbours", "replicasets --object default/web", "leases -n shop", "replicasets -n default",
		"shop/web-0", "default/web-0", "shop/web-1", "default/web-1")
	found := 0
	for _, name := range []string{"debugging.md", "recordings.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, " #")
			args := strings.Fields(words.Replace(line))
			if len(args) < 2 || args[0] != "leat" || args[1] != "show" {
				continue
			}
			found++
			if strings.Contains(line, "--page") {
				out, _ := inBackground(t, args[1:]...)
				out.await(t, "page of the recording on ")
				continue
			}
			out, _ := leat(t, 0, args[1:]...)
			require.NotEmpty(t, out, line)
		}
	}
	require.Greater(t, found, 8)
}
