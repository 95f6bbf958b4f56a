package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
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
		text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", name)))(t)
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

var (
	invocation = regexp.MustCompile("(?:^|[`(\\s])(?:go run ./cmd/leat|(?:\\./)?(leat(?:-server)?))((?: [a-z-]+)?)((?: [^`|&#\n]*)?)")
	longFlag   = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
)

// TestFlagsOfTheDocuments looks for each flag that a document shows with leat or leat-server.
func TestFlagsOfTheDocuments(t *testing.T) {
	server := serverFlags(t)
	pages := must.Get(filepath.Glob(filepath.Join("..", "..", "docs", "*.md")))(t)
	found := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text := must.Get(os.ReadFile(page))(t)
		for _, use := range invocation.FindAllStringSubmatch(string(text), -1) {
			for _, flag := range longFlag.FindAllStringSubmatch(use[2]+use[3], -1) {
				found++
				if use[1] == "leat-server" {
					require.Contains(t, server, flag[1], "%s: %s", page, use[0])
					continue
				}
				command, _, err := newRoot().Find([]string{strings.TrimSpace(use[2])})
				require.NoError(t, err, "%s: %s", page, use[0])
				require.NotNil(t, command.Flags().Lookup(flag[1]), "%s: leat%s has no --%s", page, use[2], flag[1])
			}
		}
	}
	require.Greater(t, found, 30)
}

// TestTheServersDifferInTheFlagsThatTheDocumentsName compares leat serve with leat-server.
func TestTheServersDifferInTheFlagsThatTheDocumentsName(t *testing.T) {
	server := serverFlags(t)
	command := newServe()
	var own []string
	for _, flag := range regexp.MustCompile(`(?m)^\s+--([a-z-]+)`).FindAllStringSubmatch(command.Flags().FlagUsages(), -1) {
		if !server[flag[1]] {
			own = append(own, "--"+flag[1])
		}
	}
	require.Equal(t, []string{"--metrics", "--page"}, own)
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "serve.md")))(t)
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), "`leat serve` also has `--metrics` and `--page`")
	require.Contains(t, strings.Join(strings.Fields(command.Long), " "), "without --metrics and --page")
}

// serverFlags returns the names that the sources of leat-server give to flags. It is in another module.
func serverFlags(t *testing.T) map[string]bool {
	t.Helper()
	name := regexp.MustCompile(`"([a-z][a-z-]*)"`)
	found := map[string]bool{}
	for _, folder := range []string{"../../internal/serve", "../../testserver/cluster/cmd/leat-server"} {
		files := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
		for _, file := range files {
			text := must.Get(os.ReadFile(file))(t)
			for _, n := range name.FindAllStringSubmatch(string(text), -1) {
				found[n[1]] = true
			}
		}
	}
	return found
}
