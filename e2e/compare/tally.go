package compare

import (
	"fmt"
	"strings"
)

// Tally counts the steps of one area.
type Tally struct {
	Area  *Area
	Equal int
	All   int
}

// String returns a line such as "verbs 93/104 equal".
func (t Tally) String() string { return fmt.Sprintf("%s %d/%d equal", t.Area.Name, t.Equal, t.All) }

// The marks of the part of a page that the comparison writes.
const (
	pageBegin = "<!-- go test -C e2e ./compare -update writes this part -->\n"
	pageEnd   = "<!-- end -->\n"
)

// Page returns a page of documentation with the part between its marks written again.
func Page(page string, tallies []Tally, t *Table) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !ok || !ended {
		return "", fmt.Errorf("compare: the page needs the marks %q and %q", pageBegin, pageEnd)
	}
	var b strings.Builder
	b.WriteString(before + pageBegin + "\n| area | equal | requests and commands |\n|---|---|---|\n")
	var all Tally
	for _, tally := range tallies {
		fmt.Fprintf(&b, "| %s | %d of %d | %s |\n", tally.Area.Name, tally.Equal, tally.All, tally.Area.About)
		all.Equal, all.All = all.Equal+tally.Equal, all.All+tally.All
	}
	fmt.Fprintf(&b, "| all | %d of %d | |\n", all.Equal, all.All)
	b.WriteString("\n| why answers differ | how many |\n|---|---|\n")
	for _, reason := range t.reasons {
		if rows := t.because(reason); len(rows) > 0 {
			fmt.Fprintf(&b, "| %s | %d |\n", reason, len(rows))
		}
	}
	b.WriteString("\n" + pageEnd + after)
	return b.String(), nil
}
