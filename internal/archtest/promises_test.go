package archtest_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// promisesPath is the table of promises and their tests. A doc.go states a promise in a user's words; the table names
// the tests, so that doc.go need not.
const promisesPath = "internal/archtest/promises.md"

// promise is a row of the table.
type promise struct {
	line             int
	pkg, text, tests string
}

// promises reads the table. A repository without the file has no rows.
func (s *source) promises() []promise {
	content, err := fs.ReadFile(s.fs, promisesPath)
	if err != nil {
		return nil
	}
	var rows []promise
	for i, text := range strings.Split(string(content), "\n") {
		cells := strings.Split(text, "|")
		if len(cells) != 5 || strings.HasPrefix(text, "|--") || strings.TrimSpace(cells[1]) == "package" {
			continue
		}
		rows = append(rows, promise{i + 1, strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])})
	}
	return rows
}

// checkPromises checks the promises of a doc.go: they are numbered, they are few, and each has a row in the table.
func (s *source) checkPromises(card *file, sec section) []finding {
	var found []finding
	rows := s.promises()
	texts := numberedTexts(sec)
	for i, l := range texts {
		number, text, _ := strings.Cut(l.text, ". ")
		if number != strconv.Itoa(i+1) {
			found = append(found, s.at(card, l.pos, "promise %d has the number %s", i+1, number))
		}
		if !slices.ContainsFunc(rows, func(p promise) bool { return p.pkg == card.pkg && p.text == text }) {
			found = append(found, s.at(card, l.pos, "%s needs a row that names the tests: | %s | %s | … |", promisesPath, card.pkg, text))
		}
	}
	if len(texts) == 0 {
		found = append(found, s.at(card, sec.pos, "the promises are not numbered, as \"//  1. \""))
	}
	if len(texts) > maxPromises {
		found = append(found, s.at(card, sec.pos, "%d promises; %d are the most", len(texts), maxPromises))
	}
	return found
}

// numberedTexts returns the items of a numbered list, each as one line.
func numberedTexts(sec section) []line {
	var items []line
	for _, l := range sec.lines {
		text := strings.TrimSpace(l.text)
		switch {
		case numbered.MatchString(l.text):
			items = append(items, line{text, l.pos})
		case text != "" && strings.HasPrefix(l.text, "    ") && len(items) > 0:
			items[len(items)-1].text += " " + text
		}
	}
	return items
}

var testName = regexp.MustCompile(`^(?:([\w/]+)\.)?((?:Test|Fuzz|Benchmark|Example)\w*)$`)

// checkPromiseTable checks the rows: each names a package, states a promise, and names at least one test that exists.
// The rows of a package stand together.
func checkPromiseTable(s *source) []finding {
	var found []finding
	packages, last, seen := s.packages(), "", map[string]bool{}
	for _, p := range s.promises() {
		object := func(reason string) { found = append(found, finding{promisesPath, p.line, reason}) }
		if p.pkg != last && seen[p.pkg] {
			object("the other rows of " + p.pkg + " stand above")
		}
		last, seen[p.pkg] = p.pkg, true
		if _, exists := packages[p.pkg]; !exists {
			object("there is no package " + p.pkg)
		}
		if p.text == "" || p.tests == "" {
			object("a row needs a promise and at least one test")
			continue
		}
		for _, name := range strings.Split(p.tests, ", ") {
			m := testName.FindStringSubmatch(name)
			if m == nil {
				object(name + " is not the name of a test")
				continue
			}
			pkg := p.pkg
			if m[1] != "" {
				pkg = m[1]
			}
			if !s.testFunctions(pkg)[m[2]] {
				object("there is no " + m[2] + " in the tests of " + pkg)
			}
		}
	}
	return found
}
