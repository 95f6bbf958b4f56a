package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExploreShowsCounterexamples lists the counterexamples, prints each with its failure, and follows the links of the
// page.
func TestExploreShowsCounterexamples(t *testing.T) {
	out, _ := inBackground(t, "explore", "--page")
	out.await(t, "page of the counterexamples on ")
	url := regexp.MustCompile(`http://[^/]+/`).FindString(out.String())
	page := readFrom(t, url)
	list, _ := leat(t, 0, "explore")
	require.GreaterOrEqual(t, strings.Count(list, "\n"), 5)
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		text, _ := leat(t, 0, "explore", name)
		all, err := counterexamples()
		require.NoError(t, err)
		for _, c := range all {
			if c.Name != name {
				continue
			}
			require.NotEmpty(t, c.Promise)
			require.Contains(t, line, c.Rule)
			require.Contains(t, text, "The promise is broken: "+c.Failure)
			require.GreaterOrEqual(t, len(c.Steps), 2)
			for i, s := range c.Steps {
				require.GreaterOrEqual(t, len(s.Parts), 2, "%s, step %d", name, i)
			}
			require.Equal(t, len(c.Steps), strings.Count(page, `<section id="`+name+"-"))
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, page, `<section id="`+link[1]+`"`)
	}
}

func TestExploreMarksWhatAStepChanges(t *testing.T) {
	c := parseCounterexample("x", "Rule: r.\nPromise: p.\nFailure: f: g\n\n0. begin\n   a: one\n   b: two\n1. go on\n   a: one\n   b: 3\n")
	out := newOutput()
	c.print(newLines(out))
	require.Equal(t, "What is wrong: r.\nThe promise: p.\n\n0. begin\n   a                      one\n   b                      two\n\n"+
		"1. go on\n   a                      one\n * b                      3\n\nThe promise is broken: f: g.\n", out.String())
}

func TestExploreRefusesWrongInput(t *testing.T) {
	for says, args := range map[string][]string{
		`leat: there is no counterexample "nothing"; leat explore lists them` + "\n": {"nothing"},
		"leat: leat explore takes one name, or --page\n":                             {"a", "--page"},
	} {
		_, errs := leat(t, 2, append([]string{"explore"}, args...)...)
		require.Equal(t, says, errs)
	}
	_, errs := leat(t, 1, "explore", "--page=nowhere")
	require.Contains(t, errs, "leat: --page: ")
}
