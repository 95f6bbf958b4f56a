package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

func TestPagesAgreeOnRunnables(t *testing.T) {
	const rule = "unnable of your own works only on the leader: it starts when this replica leads, and ends before the lease is released. " +
		"A Placement, or a method NeedLeaderElection that returns false, makes it work on every replica"
	for _, page := range []string{
		"README.md", "docs/architecture.md", "docs/operator.md", "docs/migrate.md", "manager/doc.go", "manager/runnable.go", "program/doc.go",
	} {
		require.Contains(t, words(t, page), rule, page)
	}
}

// words returns a page in one line, without markup and the slashes of comments.
func words(t *testing.T, page string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", filepath.FromSlash(page))))(t)
	plain := strings.NewReplacer("`", "", "*", "", "//", " ").Replace(string(text))
	return strings.Join(strings.Fields(plain), " ")
}
