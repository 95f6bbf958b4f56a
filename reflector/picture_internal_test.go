package reflector

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arrow leads from a request to the next one.
type arrow struct{ from, to string }

// arrows are the arrows of the state machine, each with its causes: names of outcomes, or "complete".
type arrows map[arrow]map[string]bool

func (a arrows) add(from, to, cause string) {
	if a[arrow{from, to}] == nil {
		a[arrow{from, to}] = map[string]bool{}
	}
	a[arrow{from, to}][cause] = true
}

// moved returns the arrows with other ends.
func (a arrows) moved(end func(from, to string) string) arrows {
	moved := arrows{}
	for at, causes := range a {
		for cause := range causes {
			moved.add(at.from, end(at.from, at.to), cause)
		}
	}
	return moved
}

// without returns the arrows that do not begin at from.
func (a arrows) without(from string) arrows {
	rest := maps.Clone(a)
	maps.DeleteFunc(rest, func(at arrow, _ map[string]bool) bool { return at.from == from })
	return rest
}

// String returns a line for each arrow, in the order of the text.
func (a arrows) String() string {
	var lines []string
	for at, causes := range a {
		lines = append(lines, fmt.Sprintf("%s --> %s: %s", at.from, at.to, strings.Join(slices.Sorted(maps.Keys(causes)), ", ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var boxes = map[verb]string{watchList: "WatchList", page: "Page", watch: "Watch"}

// arrowsOf returns the arrows that next takes from every state with this version.
func arrowsOf(l *limits, version string) arrows {
	found := arrows{}
	for _, s := range statesWith(version) {
		for _, res := range allResults(s.do, version) {
			from := s.do
			if from == watchList && res.synced {
				found.add("WatchList", "Watch", "complete")
				from = watch
			}
			to, _ := l.next(s, res)
			found.add(boxes[from], boxes[to.do], outcomeNames[res.outcome])
		}
	}
	return found
}

// statesWith returns states with every value that the next request can depend on.
func statesWith(version string) (all []state) {
	for _, do := range allVerbs {
		for _, list := range []listState{{}, {need: consistentRead}, {need: acceptRollback}, {token: "t"}, {token: "t", unlimited: true}} {
			if list.token != "" && do != page {
				continue
			}
			for n := range maxWatchListFailures {
				for m := range maxEmptyWatches {
					all = append(all, state{
						do: do, version: version, list: list, watchList: watchListState{failures: n}, watches: watchState{failures: m},
					})
				}
			}
		}
	}
	return all
}

// allResults returns results with every value that the next request can depend on.
func allResults(do verb, version string) (all []result) {
	for _, o := range allOutcomes {
		for _, synced := range []bool{false, true} {
			for events := range 2 {
				for _, lasted := range []time.Duration{0, time.Minute} {
					if c := (combination{do, o, synced, events > 0}); c.possible() {
						all = append(all, result{outcome: o, synced: synced, version: version, token: "u", events: events, lasted: lasted, at: noon})
					}
				}
			}
		}
	}
	return all
}

var (
	drawnArrow = regexp.MustCompile(`(?m)^    (\w+) --> (\w+): (.+)$`)
	groupRow   = regexp.MustCompile(`(?m)^\| (\w+) \| (.+) \|$`)
)

// drawn reads the picture in a page: a Mermaid state diagram, and the table of groups after it.
func drawn(t *testing.T, page string) arrows {
	_, rest, found := strings.Cut(page, "```mermaid\nstateDiagram-v2\n    [*] --> WatchList\n")
	require.True(t, found, "the page has no picture")
	diagram, rest, _ := strings.Cut(rest, "```\n")
	table, _, _ := strings.Cut(rest, "\n### ")
	groups := map[string][]string{"complete": {"complete"}}
	for _, name := range outcomeNames {
		groups[name] = []string{name}
	}
	for _, row := range groupRow.FindAllStringSubmatch(table, -1) {
		groups[row[1]] = strings.Split(row[2], ", ")
	}
	names := regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(groups)), "|") + `)\b`)
	all := arrows{}
	for _, m := range drawnArrow.FindAllStringSubmatch(diagram, -1) {
		for _, name := range names.FindAllString(m[3], -1) {
			for _, cause := range groups[name] {
				all.add(m[1], m[2], cause)
			}
		}
	}
	return all
}

// TestPicture compares the picture in docs/architecture.md with next, and the sentences below it.
func TestPicture(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	require.NoError(t, err)
	picture := drawn(t, string(page))
	on, off := testLimits(), newLimits(false, 0, 0)
	require.Equal(t, "WatchList", boxes[on.first(noon).do])
	require.Equal(t, arrowsOf(on, "7").String(), picture.String())

	pages := picture.moved(func(_, to string) string { return strings.Replace(to, "WatchList", "Page", 1) })
	require.Equal(t, pages.without("WatchList").String(), arrowsOf(off, "7").without("WatchList").String(), "WatchLists are off")

	require.Equal(t, picture.String(), arrowsOf(on, "opaque").String(), "versions without an order")

	noWatch := picture.moved(func(from, to string) string {
		if from == "Watch" {
			return "WatchList"
		}
		return to
	})
	for _, version := range []string{"", "0"} {
		require.Equal(t, noWatch.String(), arrowsOf(on, version).String(), "a server without versions")
	}
}
