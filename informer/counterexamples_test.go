//go:build !race

package informer_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/informer"
)

// TestExploreFindsBrokenRules explores variants of the pipeline that break a rule, and writes each counterexample as a
// transcript. The real informer, with its goroutines and a server, plays it and must do what the explored pipeline does
// without the broken rule. The transcript is in testdata, so TestTranscripts plays it too.
func TestExploreFindsBrokenRules(t *testing.T) {
	for _, rule := range informer.BrokenRules {
		t.Run(rule.Name, func(t *testing.T) {
			why, broken, whole := rule.Counterexample(t)
			require.NotEqual(t, broken, whole)
			script := fmt.Sprintf("# A counterexample of the exploration. A rule was broken: %s.\n# Its check said: %s.\n# The handlers got this:\n#\n", rule.Rule, why)
			for line := range strings.Lines(broken) {
				script += "# " + line
			}
			script += "\n" + whole
			var got string
			synctest.Test(t, func(t *testing.T) { got = runScript(t, script) })
			var played strings.Builder
			for line := range strings.Lines(got) {
				if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "          handler ") {
					played.WriteString(line)
				}
			}
			require.Equal(t, whole, played.String())
			file := fmt.Sprintf("testdata/explored_%s.txt", rule.Name)
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			saved, err := os.ReadFile(file)
			require.NoError(t, err, "go test ./informer -run TestExploreFindsBrokenRules -rewrite")
			require.Equal(t, string(saved), got)
		})
	}
}
