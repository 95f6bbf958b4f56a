package archtest_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxProseLine is the largest width of a comment and of a line of Markdown, in columns. A tab counts as four.
const maxProseLine = 120

// banned are phrases that make a sentence hard to read, each with its replacement.
var banned = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\banew\b`), "again, or new"},
	{regexp.MustCompile(`\bfor ever\b`), "forever"},
	{regexp.MustCompile(`\bin vain\b`), "without effect"},
	{regexp.MustCompile(`\bbe it\b`), "whether"},
	{regexp.MustCompile(`\bbut for\b`), "except"},
	{regexp.MustCompile(`\ball the same\b`), "anyway"},
	{regexp.MustCompile(`\bof its own accord\b`), "by itself"},
	{regexp.MustCompile(`\bin the place of\b`), "instead of"},

	{regexp.MustCompile(`\b(is|are|was|were) (told|believed|asked)\b`), "the actual subject with an active verb"},
	{regexp.MustCompile(`\b(is|are|was|were) none\b`), "say what the thing is, or delete the sentence"},
	{regexp.MustCompile(`\b[Ff]or (who|whoever|those who)\b`), "name the reader or the caller"},
	{regexp.MustCompile(`\b[Nn](obody|one) (is|are|was|has|have|does|can|will|knows|looks|asks|else)\b`), "the actual subject with \"not\""},
	{regexp.MustCompile(`(^|[.;:,] )[Ww]ho(ever)? [a-z]+s\b`), "a noun instead of \"who\""},
	{regexp.MustCompile(`\b[Ww]hat (is|was|has|it|they|there)\b[^.?|]*\b(is|was|are|were) (what|that|none|not)\b`), "a noun instead of \"what\""},
	{regexp.MustCompile(`\bstreaming lists?\b`), "WatchList"},
}

// checkProse checks the part of the style sheet that a program can check, in Go comments and in Markdown.
func checkProse(t *testing.T, s *source) []finding {
	t.Helper()
	var found []finding
	for _, f := range s.files {
		found = append(found, s.checkCommentProse(f)...)
	}
	require.NoError(t, fs.WalkDir(s.fs, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata"):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			content, err := fs.ReadFile(s.fs, name)
			if err != nil {
				return err
			}
			found = append(found, checkPage(name, string(content))...)
			if name == "CHANGELOG.md" {
				found = append(found, checkChanges(name, string(content))...)
			}
		}
		return nil
	}))
	return found
}

// checkChanges bounds the section of the next release, so that its reader finds what breaks a program.
func checkChanges(name, content string) []finding {
	const most = 60
	before, section, _ := strings.Cut(content, "## Unreleased\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if lines := 1 + strings.Count(section, "\n"); lines > most {
		return []finding{{name, 1 + strings.Count(before, "\n"), fmt.Sprintf("%d lines of a release; %d are the most", lines, most)}}
	}
	return nil
}

// checkCommentProse checks the comments of one Go file. The expected output of an example and what a program wrote are
// not prose.
func (s *source) checkCommentProse(f *file) []finding {
	var found []finding
	if ast.IsGenerated(f.File) {
		return nil
	}
	for _, group := range f.Comments {
		if isOutput(group) {
			continue
		}
		first := s.set.Position(group.Pos()).Line
		var text []string
		for _, c := range group.List {
			at := s.set.Position(c.Pos())
			indent := (at.Column - 1) * 4 // of a comment on a line of its own: tabs
			wide := !strings.HasPrefix(c.Text, "//go:") && indent+utf8.RuneCountInString(c.Text) > maxProseLine
			if wide && s.standsAlone(f, group) {
				found = append(found, finding{f.path, at.Line, "a comment of more than 120 columns"})
			}
			text = append(text, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
		}
		for _, p := range bannedIn(strings.Join(text, "\n")) {
			found = append(found, finding{f.path, first + p.line, p.reason})
		}
	}
	return found
}

// standsAlone reports whether no code stands before a comment on its line.
func (s *source) standsAlone(f *file, group *ast.CommentGroup) bool {
	at := s.set.Position(group.Pos())
	content, err := fs.ReadFile(s.fs, f.path)
	return err == nil && strings.TrimSpace(string(content[at.Offset-at.Column+1:at.Offset])) == ""
}

func isOutput(group *ast.CommentGroup) bool {
	text := strings.TrimSpace(group.Text())
	return strings.HasPrefix(text, "Output:") || strings.HasPrefix(text, "Unordered output:")
}

var codeSpan = regexp.MustCompile("`[^`]*`")

// checkPage checks one page of Markdown. Tables and code may be wider, and code may say anything.
func checkPage(name, page string) []finding {
	var found []finding
	code := false
	lines := strings.Split(page, "\n")
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			code = !code
		}
		lines[i] = codeSpan.ReplaceAllString(l, "``")
		if code {
			lines[i] = ""
		} else if utf8.RuneCountInString(l) > maxProseLine && !strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "[") {
			found = append(found, finding{name, i + 1, "a line of more than 120 columns"})
		}
	}
	for _, p := range bannedIn(strings.Join(lines, "\n")) {
		found = append(found, finding{name, 1 + p.line, p.reason})
	}
	return found
}

// bannedIn finds banned phrases in a text, also where a phrase continues on the next line. Lines count from 0.
func bannedIn(text string) []finding {
	var found []finding
	joined := strings.ReplaceAll(text, "\n", " ")
	for _, b := range banned {
		for _, at := range b.phrase.FindAllStringIndex(joined, -1) {
			start := at[0] + len(joined[at[0]:at[1]]) - len(strings.TrimLeft(joined[at[0]:at[1]], ".;:, "))
			phrase := joined[start:at[1]]
			if len(phrase) > 60 {
				phrase = phrase[:60] + "…"
			}
			found = append(found, finding{
				line: strings.Count(text[:start], "\n"), reason: "\"" + phrase + "\" is hard to read; write " + b.instead,
			})
		}
	}
	return found
}
