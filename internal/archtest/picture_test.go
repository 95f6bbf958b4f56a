package archtest_test

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

var (
	pictureBox   = regexp.MustCompile(`(\w+)\["[^":]*: ([^"]*)"\]`)
	pictureArrow = regexp.MustCompile(`(?m)^\s+(\w+)(?:\["[^"]*"\])? --> (.*)$`)
)

// TestPictureOfTheLayers compares the picture of docs/architecture.md with the imports: an import between two boxes
// needs a way of arrows, each arrow needs an import, and no arrow leads up. Each package at the root is in a box,
// except docs.
func TestPictureOfTheLayers(t *testing.T) {
	s := repository(t)
	page := must.Get(fs.ReadFile(s.fs, "docs/architecture.md"))(t)
	_, picture, _ := strings.Cut(string(page), "flowchart TD\n")
	picture, _, _ = strings.Cut(picture, "```")

	boxOf, arrows, packages := map[string]string{}, map[string][]string{}, s.packages()
	for _, box := range pictureBox.FindAllStringSubmatch(picture, -1) {
		for _, name := range strings.Split(box[2], ", ") {
			found := false
			for _, room := range []string{"", "reconcile/", "scale/", "observe/", "manager/"} {
				if packages[room+name] != nil {
					boxOf[room+name], found = box[1], true
				}
			}
			require.True(t, found, "there is no package %s", name)
		}
	}
	for _, a := range pictureArrow.FindAllStringSubmatch(picture, -1) {
		for to := range strings.SplitSeq(pictureBox.ReplaceAllString(a[2], "$1"), " & ") {
			arrows[a[1]] = append(arrows[a[1]], to)
		}
	}
	var leads func(from, to string) bool
	leads = func(from, to string) bool {
		for _, next := range arrows[from] {
			if next == to || leads(next, to) {
				return true
			}
		}
		return false
	}
	used := map[string]bool{}
	for pkg, box := range boxOf {
		require.False(t, leads(box, box), "%s is in a circle", box)
		for _, f := range packages[pkg] {
			for _, i := range f.Imports {
				path := must.Get(strconv.Unquote(i.Path.Value))(t)
				if to := boxOf[strings.TrimPrefix(path, module+"/")]; to != "" && to != box {
					require.True(t, leads(box, to), "%s imports %s, and no arrow leads from %s to %s", pkg, path, box, to)
					used[box+to] = true
				}
			}
		}
	}
	for from, all := range arrows {
		for _, to := range all {
			require.True(t, used[from+to], "no import for the arrow from %s to %s", from, to)
		}
	}
	for pkg := range packages {
		require.True(t, strings.Contains(pkg, "/") || pkg == "docs" || pkg == "." || boxOf[pkg] != "", "no box has %s", pkg)
	}
}
