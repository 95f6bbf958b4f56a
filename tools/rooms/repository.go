package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mover moves the packages of leat's repository, and changes everything that names them.
type mover struct {
	exists   map[string]bool            // tracked files and their folders
	exported map[string]map[string]bool // by the old name of a package that gets another name
}

// moveRepository moves leat's packages in the index and in the folder. It prints the lines that a person should read.
func moveRepository(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	list, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	m := mover{exists: map[string]bool{}, exported: map[string]map[string]bool{}}
	var files []string
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || strings.HasPrefix(name, "tools/rooms/") {
			continue
		}
		files = append(files, name)
		for at := name; at != "."; at = path.Dir(at) {
			m.exists[at] = true
		}
	}
	for _, moved := range moves {
		if moved.renamed() {
			m.exported[moved.name] = exportedBy(moved.from)
		}
	}
	if err := changeImports("."); err != nil {
		return err
	}
	for _, name := range files {
		if err := m.change(name); err != nil {
			return err
		}
	}
	if err := m.move(files); err != nil {
		return err
	}
	return printLeftovers()
}

// leftovers are patterns of what a person should read.
var leftovers = []string{
	`^\s*(import )?(NAMES) "github.com/leatproject`,
	`leatproject/leat/(PATHS)\b`,
	"[Pp]ackages? `?(NAMES)\\b",
	"[^w] `(NAMES)`",
}

// printLeftovers prints lines that may still have an old name.
func printLeftovers() error {
	var names, paths []string
	for _, m := range moves {
		paths = append(paths, m.from)
		if m.renamed() {
			names = append(names, m.name)
		}
	}
	fmt.Println("What may be left:")
	fill := strings.NewReplacer("NAMES", strings.Join(names, "|"), "PATHS", strings.Join(paths, "|"))
	for i, pattern := range leftovers {
		files := []string{"grep", "-nE", fill.Replace(pattern), "--", ":!tools/rooms"}
		if i > 2 {
			files = append(files, "*.md")
		}
		lines, _ := exec.Command("git", files...).Output() // an error means no line
		for line := range strings.Lines(string(lines)) {
			fmt.Printf("  %.150s\n", strings.TrimSpace(line))
		}
	}
	return nil
}

// exportedBy returns the exported names of the package in a folder.
func exportedBy(folder string) map[string]bool {
	exported := map[string]bool{}
	names, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			continue
		}
		for declared := range file.Scope.Objects {
			exported[declared] = ast.IsExported(declared)
		}
	}
	return exported
}

// move moves the files and stages everything.
func (m mover) move(files []string) error {
	for _, name := range files {
		to := newPath(name)
		if to == name {
			continue
		}
		if err := os.MkdirAll(path.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(name, to); err != nil {
			return err
		}
		for folder := path.Dir(name); folder != "." && os.Remove(folder) == nil; {
			folder = path.Dir(folder)
		}
	}
	return exec.Command("git", "add", "-A").Run()
}

// newPath returns the new path of a file or a folder. A file with the name of its package gets the new name too, except
// recorder.go, because it has the type Recorder.
func newPath(name string) string {
	m, to, moved := moveOf(name)
	if !moved || !m.renamed() || path.Dir(name) != m.from || m.name == "recorder" {
		return to
	}
	for _, suffix := range []string{".go", "_test.go"} {
		if path.Base(name) == m.name+suffix {
			return m.to + "/" + m.newName() + suffix
		}
	}
	return to
}

// change changes the texts in a file.
func (m mover) change(name string) error {
	content, err := os.ReadFile(name)
	if err != nil || bytes.IndexByte(content, 0) >= 0 || path.Base(name) == "go.sum" {
		return err
	}
	before := string(content)
	var after string
	switch {
	case name == "CHANGELOG.md":
		next, released, _ := strings.Cut(before, "\n## v")
		after = m.changePage(name, next) + "\n## v" + released
	case path.Ext(name) == ".go":
		after = m.changeGo(name, before)
	case path.Ext(name) == ".md":
		after = m.changePage(name, before)
	case path.Base(name) == "go.mod":
		after = m.changeModule(name, m.changeText(before))
	case name == "internal/archtest/exported.txt":
		after = firstName.ReplaceAllStringFunc(before, newPaths)
	default:
		after = m.changeText(before)
	}
	after = wrap(name, before, after)
	if after == before {
		return nil
	}
	return os.WriteFile(name, []byte(after), 0o644)
}

var (
	firstName  = regexp.MustCompile(`(?m)^\t\S+ `)
	word       = regexp.MustCompile(`[\w./-]+`)
	packageOf  = regexp.MustCompile("(?:^|[^\\w`])[Pp]ackages?\\s(?:`?\\w+`? and )?`?$")
	code       = regexp.MustCompile("`[^`\n]+`")
	local      = regexp.MustCompile(`"\.\./[^"\s]*"`)
	link       = regexp.MustCompile(`\[([^\]\n]*)\]\(([^)#:\s]+)(#[^)]*)?\)`)
	replacedBy = regexp.MustCompile(`=> (\.\.?/?\S*)`)
	mermaid    = regexp.MustCompile("(?s)```mermaid\n.*?```")
	helper     = regexp.MustCompile(`("\w+": )?\bleat\("(\w+)"\)`)
)

// changeText changes the paths in a text, and the names of renamed packages: "package fleet", and fleet.Spread.
func (m mover) changeText(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range word.FindAllStringIndex(text, -1) {
		b.WriteString(text[last:at[0]])
		b.WriteString(m.changeWord(text[:at[0]], text[at[0]:at[1]]))
		last = at[1]
	}
	return b.String() + text[last:]
}

func (m mover) changeWord(before, found string) string {
	if rest, own := strings.CutPrefix(found, module); own {
		_, to, _ := moveOf(strings.TrimRight(rest, "./"))
		return module + to + rest[len(strings.TrimRight(rest, "./")):]
	}
	if rest, ok := strings.CutPrefix(found, "/"); ok && strings.HasSuffix(strings.ReplaceAll(before, " ", ""), `module+"`) {
		_, to, _ := moveOf(rest)
		return "/" + to
	}
	up := found[:len(found)-len(strings.TrimLeft(found, "./"))]
	rest := found[len(up):]
	if up != "" && !strings.HasSuffix(up, "/") || strings.HasPrefix(up, "/") {
		return found
	}
	for end := len(rest); end > 0; end = max(strings.LastIndexAny(rest[:end], "/.-"), 0) {
		if known := rest[:end]; strings.Contains(known, "/") && m.exists[known] {
			return up + newPath(known) + rest[end:]
		}
	}
	name, member, _ := strings.Cut(rest, ".")
	for _, moved := range moves {
		if !moved.renamed() || name != moved.name || strings.Contains(name, "/") {
			continue
		}
		first, _, _ := strings.Cut(member, ".")
		if m.exported[name][first] || packageOf.MatchString(before[max(len(before)-40, 0):]) {
			return up + moved.newName() + rest[len(name):]
		}
	}
	return found
}

// newPaths changes every path of a package in a list of them: "scopes shard/*" becomes "scale/scopes scale/shard/*".
func newPaths(list string) string {
	return word.ReplaceAllStringFunc(list, func(found string) string {
		at, test, isTest := strings.Cut(found, ".")
		if _, to, moved := moveOf(strings.TrimSuffix(at, "/")); moved && (!isTest || regexp.MustCompile(`^[A-Z]`).MatchString(test)) {
			return to + found[len(strings.TrimSuffix(at, "/")):]
		}
		return found
	})
}

// changeGo changes the package clause, the comments and the strings of a Go file.
func (m mover) changeGo(name, text string) string {
	moved, _, _ := moveOf(name)
	inside := path.Dir(name) == moved.from && moved.renamed()
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(name, -1, len(text)), []byte(text), func(token.Position, string) {}, scanner.ScanComments)
	var b strings.Builder
	last, clause := 0, false
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			break
		}
		at := set.Position(pos).Offset
		after := literal
		switch {
		case kind == token.COMMENT:
			after = m.changeText(literal)
			if inside && moved.name != "recorder" {
				after = strings.ReplaceAll(after, " "+moved.name+".go", " "+moved.newName()+".go")
			}
			if strings.HasPrefix(literal, "// Output:") {
				after = changePrefix(moved, inside, after)
			}
		case kind == token.STRING:
			after = changePrefix(moved, inside, m.changeString(name, literal))
		case kind == token.PACKAGE:
			clause = true
		case kind == token.IDENT && clause:
			if inside {
				after = strings.Replace(literal, moved.name, moved.newName(), 1)
			}
			clause = false
		}
		if after != literal {
			b.WriteString(text[last:at])
			b.WriteString(after)
			last = at + len(literal)
		}
	}
	b.WriteString(text[last:])
	changed := b.String()
	if name == "bench/report/scaletext.go" {
		changed = changeSpans(changed)
	}
	after := helper.ReplaceAllStringFunc(changed, func(found string) string {
		parts := helper.FindStringSubmatch(found)
		at, to, ok := moveOf(parts[2])
		if !ok || name != "bench/interop/migrate_test.go" {
			return found
		}
		return strings.ReplaceAll(parts[1], `"`+at.name+`"`, `"`+at.newName()+`"`) + `leat("` + to + `")`
	})
	if formatted, err := format.Source([]byte(after)); err == nil && !strings.Contains(name, "testdata/") {
		return string(formatted)
	}
	return after
}

// changeString changes a string of a Go file.
func (m mover) changeString(name, literal string) string {
	inTable := name == "internal/archtest/table_test.go" ||
		name == "internal/archtest/rules_test.go" && strings.Contains(literal, "; only ") ||
		name == "internal/archtest/goroutines_test.go" && !strings.Contains(literal, "`")
	switch {
	case inTable: // shard/cut was the only package below shard that logs
		return strings.ReplaceAll(newPaths(literal), "scale/shard/*", "scale/shardedsource")
	case name == "internal/archtest/goroutines_test.go":
		return m.changeText(code.ReplaceAllStringFunc(literal, m.inCode))
	}
	literal = local.ReplaceAllStringFunc(literal, func(found string) string {
		if at := strings.Trim(found, `"`); m.exists[path.Join(path.Dir(name), at)] || path.Join(path.Dir(name), at) == "." {
			return `"` + m.relative(name, at) + `"`
		}
		return found
	})
	return m.changeText(literal)
}

// relative returns the new relative path of what a file names with an old one.
func (m mover) relative(name, at string) string {
	to, err := filepath.Rel(path.Dir(newPath(name)), newPath(path.Join(path.Dir(name), at)))
	if err != nil || filepath.ToSlash(to) == path.Clean(at) {
		return at
	}
	return filepath.ToSlash(to)
}

// changePrefix changes the name with which the errors of a renamed package begin, and its name in printed types.
// "clusters: [" begins a kubeconfig.
func changePrefix(moved move, inside bool, text string) string {
	text = regexp.MustCompile(`\bconsistency: (list|informer)`).ReplaceAllString(text, "driftcheck: $1")
	if !inside {
		return text
	}
	text = strings.ReplaceAll(text, "*"+moved.name+"_test.", "*"+moved.newName()+"_test.")
	return regexp.MustCompile(`\b`+moved.name+`: ([^\[])`).ReplaceAllString(text, moved.newName()+": $1")
}

// inCode changes a span of code that is only a path.
func (m mover) inCode(span string) string {
	if at := strings.Trim(span, "`"); m.exists[at] {
		_, to, _ := moveOf(at)
		return "`" + to + "`"
	}
	return span
}

// changeSpans changes spans of code that are only the name of a renamed package. Rows of the bench keep their names.
func changeSpans(text string) string {
	for _, moved := range moves {
		if moved.renamed() && moved.name != "status" {
			span := regexp.MustCompile("(row (?:` \\+ \")?)?`" + moved.name + "`")
			text = span.ReplaceAllStringFunc(text, func(found string) string {
				if strings.HasPrefix(found, "row ") {
					return found
				}
				return "`" + moved.newName() + "`"
			})
		}
	}
	return text
}

// changePage changes a page of Markdown.
func (m mover) changePage(name, text string) string {
	text = link.ReplaceAllStringFunc(text, func(found string) string {
		parts := link.FindStringSubmatch(found)
		at := path.Join(path.Dir(name), parts[2])
		if !m.exists[at] {
			return found
		}
		if moved, _, ok := moveOf(at); ok && parts[1] == moved.name {
			parts[1] = moved.newName()
		}
		return "[" + parts[1] + "](" + m.relative(name, parts[2]) + parts[3] + ")"
	})
	switch {
	case name == "docs/promises.md":
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if cells := strings.Split(line, "|"); len(cells) == 5 {
				cells[1], cells[3] = newPaths(cells[1]), newPaths(cells[3])
				lines[i] = strings.Join(cells, "|")
			}
		}
		text = strings.Join(lines, "\n")
	case name == "docs/dependencies.md":
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if cells := strings.Split(line, "|"); len(cells) == 5 {
				cells[2] = newPaths(cells[2])
				lines[i] = strings.Join(cells, "|")
			}
		}
		text = strings.Join(lines, "\n")
	case name == "docs/architecture.md":
		text = mermaid.ReplaceAllStringFunc(text, func(graph string) string {
			return word.ReplaceAllStringFunc(graph, func(node string) string {
				if moved, _, ok := moveOf(node); ok && node == moved.from {
					return moved.newName()
				}
				return node
			})
		})
		text = code.ReplaceAllStringFunc(text, m.inCode)
	case strings.HasPrefix(name, "docs/decisions/"), name == "docs/scale.md", name == "CHANGELOG.md":
		text = changeSpans(text)
	}
	return m.changeText(text)
}

// changeModule changes the folders in a go.mod.
func (m mover) changeModule(name, text string) string {
	return replacedBy.ReplaceAllStringFunc(text, func(found string) string {
		return "=> " + m.relative(name, strings.TrimPrefix(found, "=> "))
	})
}

const widest = 120

// A raw string of Go cannot contain a backquote, so the texts of docs/scale.md are put together. One character stands
// for the end of a string, a quoted backquote and the begin of the next string.
var (
	quoted   = strings.NewReplacer("` + \"`", "\x01", "`\" + `", "\x02")
	unquoted = strings.NewReplacer("\x01", "` + \"`", "\x02", "`\" + `")
)

var item = regexp.MustCompile(`^\s*(?:- |\d+\. )?`)

// wrap moves the last words of lines that have become too long to the next line, in comments and in Markdown.
func wrap(name, before, after string) (wrapped string) {
	comments := path.Ext(name) == ".go"
	if !comments && path.Ext(name) != ".md" {
		return after
	}
	old := map[string]bool{}
	for line := range strings.SplitSeq(quoted.Replace(before), "\n") {
		old[line] = true
	}
	if name == "bench/report/scaletext.go" {
		comments = false
		after = quoted.Replace(after)
		defer func() { wrapped = unquoted.Replace(wrapped) }()
	}
	lines := strings.Split(after, "\n")
	fenced := false
	for i := 0; i < len(lines); i++ {
		lead, text, ok := prose(lines[i], comments)
		if !comments && strings.HasPrefix(strings.TrimSpace(lines[i]), "```") {
			fenced = !fenced
		}
		if !ok || fenced || old[lines[i]] || width(lines[i]) <= widest {
			continue
		}
		room := widest - width(lead)
		runes := []rune(text)
		cut := strings.LastIndexByte(string(runes[:min(room+1, len(runes))]), ' ')
		if cut <= 0 {
			continue
		}
		head, tail := text[:cut], text[cut+1:]
		lines[i] = lead + head
		indent := strings.Repeat(" ", len(item.FindString(head)))
		next, more, ok := "", "", false
		if i+1 < len(lines) {
			next, more, ok = prose(lines[i+1], comments)
		}
		continues := ok && next == lead && strings.TrimSpace(more) != "" && item.FindString(more) == indent
		if continues {
			lines[i+1] = lead + indent + tail + " " + more[len(indent):]
		} else {
			lines = slices.Insert(lines, i+1, lead+indent+tail)
		}
	}
	return strings.Join(lines, "\n")
}

// prose splits a line of a comment, or of a paragraph of Markdown.
func prose(line string, comments bool) (lead, text string, ok bool) {
	if !comments {
		return "", line, !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#")
	}
	at := strings.Index(line, "//")
	if at < 0 || strings.TrimSpace(line[:at]) != "" {
		return "", "", false
	}
	text = line[at+2:]
	if strings.HasPrefix(text, "\t") || strings.HasPrefix(text, " #") || strings.HasPrefix(text, "go:") {
		return "", "", false
	}
	if strings.HasPrefix(text, " ") {
		return line[:at+3], text[1:], true
	}
	return line[:at+2], text, true
}

// width returns the columns of a line. A tab counts as four.
func width(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}
