package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// sources returns the code of the library below some folders, without tests.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var text strings.Builder
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			text.Write(source)
			return err
		}))
	}
	return text.String()
}

var (
	message = regexp.MustCompile(`"[^"|]+"`)
	metric  = regexp.MustCompile("`((?:leat|controller_runtime|workqueue|leader_election|rest_client)_[a-z_]+[a-z])`")
)

// TestFailuresShowWhatThePageSays looks for each message of the log and each metric of failures.md in the code.
func TestFailuresShowWhatThePageSays(t *testing.T) {
	page := must.Get(os.ReadFile("failures.md"))(t)
	library, metrics := sources(t, "."), sources(t, "metrics")
	found := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || strings.HasPrefix(line, "| failure") {
			continue
		}
		for _, m := range message.FindAllString(cells[2], -1) {
			require.True(t, strings.Contains(library, m), "%s: %s", m, line)
			found++
		}
		for _, m := range metric.FindAllStringSubmatch(line, -1) {
			require.True(t, strings.Contains(metrics, `"`+m[1]+`"`), "%s: %s", m[1], line)
			found++
		}
	}
	require.Greater(t, found, 40)
}

func TestIndexListsEveryPage(t *testing.T) {
	index := must.Get(os.ReadFile("README.md"))(t)
	paths := must.Get(filepath.Glob("*.md"))(t)
	for _, path := range paths {
		if path != "README.md" {
			require.Equal(t, 1, strings.Count(string(index), "\n| ["+path+"]("+path+") |"), path)
		}
	}
}

func TestIndexListsEveryDecision(t *testing.T) {
	index := must.Get(os.ReadFile("decisions/README.md"))(t)
	paths := must.Get(filepath.Glob("decisions/0*.md"))(t)
	for _, path := range paths {
		page := must.Get(os.ReadFile(path))(t)
		heading, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
		number, title, _ := strings.Cut(heading, ". ")
		line := "\n| " + number + " | [" + title + "](" + filepath.Base(path) + ") | "
		require.Equal(t, 1, strings.Count(string(index), line), line)
	}
}
