package archtest_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// headings are the sections of a doc.go in their order. Other sections may stand between them.
var headings = []string{"Example", "Promises", "Concurrency", "Differences from client-go"}

// checkComments finds exported symbols without a doc comment: functions, types, their methods, the methods of
// interfaces, constants and variables. A comment on a group of constants or variables covers all of them.
func checkComments(s *source) []finding {
	var found []finding
	for f := range s.own {
		if f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name, exported := exportedName(d); exported && d.Doc.Text() == "" {
					found = append(found, s.at(f, d.Pos(), "%s has no doc comment", name))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					found = append(found, s.checkSpec(f, d, spec)...)
				}
			}
		}
	}
	return found
}

// exportedName returns the name of a function or method, and whether others can call it.
func exportedName(d *ast.FuncDecl) (string, bool) {
	if d.Recv == nil {
		return d.Name.Name, d.Name.IsExported()
	}
	receiver := d.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.ParenExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name, t.IsExported() && d.Name.IsExported()
		default:
			return d.Name.Name, d.Name.IsExported()
		}
	}
}

func (s *source) checkSpec(f *file, d *ast.GenDecl, spec ast.Spec) []finding {
	var found []finding
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		if spec.Doc.Text() == "" && (d.Lparen.IsValid() || d.Doc.Text() == "") {
			found = append(found, s.at(f, spec.Pos(), "%s has no doc comment", spec.Name.Name))
		}
		if i, ok := spec.Type.(*ast.InterfaceType); ok {
			found = append(found, s.checkInterface(f, spec.Name.Name, i)...)
		}
	case *ast.ValueSpec:
		if spec.Doc.Text() != "" || spec.Comment.Text() != "" || d.Doc.Text() != "" {
			return nil
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				found = append(found, s.at(f, name.Pos(), "%s has no doc comment", name.Name))
			}
		}
	}
	return found
}

// checkInterface requires a doc comment for each method. An interface with the accessors of an object needs only one
// comment.
func (s *source) checkInterface(f *file, name string, i *ast.InterfaceType) []finding {
	var found []finding
	for _, m := range i.Methods.List {
		for _, method := range m.Names {
			accessor := strings.HasPrefix(method.Name, "Get")
			if method.IsExported() && m.Doc.Text() == "" && m.Comment.Text() == "" && !accessor {
				found = append(found, s.at(f, m.Pos(), "%s.%s has no doc comment", name, method.Name))
			}
		}
	}
	return found
}

// checkCards finds packages whose doc.go is missing or incomplete.
func checkCards(s *source) []finding {
	var found []finding
	packages := s.packages()
	for pkg, files := range packages {
		var card *file
		for _, f := range files {
			if path.Base(f.path) == "doc.go" {
				card = f
			} else if f.Doc != nil {
				found = append(found, s.at(f, f.Doc.Pos(), "the comment of package %s belongs into its doc.go", pkg))
			}
		}
		if card == nil || card.Doc == nil {
			found = append(found, s.at(files[0], files[0].Package, "package %s has no doc.go with a package comment", pkg))
			continue
		}
		if card.Name.Name != "main" && pkg != landingPage {
			found = append(found, s.checkCard(card, packages)...)
		}
	}
	return found
}

// landingPage is the folder of package leat, whose comment leads to all packages.
const landingPage = "."

// checkLandingPage finds packages of the library that the comment of package leat does not link. A link is "[cache]" in
// a sentence, with a target at the end.
func checkLandingPage(s *source) []finding {
	page, err := fs.ReadFile(s.fs, "doc.go")
	if err != nil {
		return []finding{{"doc.go", 1, err.Error()}}
	}
	var found []finding
	for pkg := range s.packages() {
		folders := strings.Split(pkg, "/")
		if slices.Contains(folders, "internal") || slices.Contains([]string{landingPage, "cmd", "docs", "examples"}, folders[0]) {
			continue
		}
		link := "[" + path.Base(pkg) + "]"
		target := "// " + link + ": https://pkg.go.dev/" + module + "/" + pkg
		if !strings.Contains(string(page), target+"\n") || strings.Count(string(page), link) < 2 {
			found = append(found, finding{"doc.go", 1, "no sentence links package " + pkg + "; the target is " + target})
		}
	}
	return found
}

// section is a part of a package comment: its heading, and its lines with where they stand.
type section struct {
	heading string
	pos     token.Pos
	lines   []line
}

type line struct {
	text string
	pos  token.Pos
}

func sectionsOf(doc *ast.CommentGroup) []section {
	sections := []section{{pos: doc.Pos()}}
	for _, c := range doc.List {
		text := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ")
		if heading, ok := strings.CutPrefix(text, "# "); ok {
			sections = append(sections, section{heading: heading, pos: c.Pos()})
			continue
		}
		last := &sections[len(sections)-1]
		last.lines = append(last.lines, line{text, c.Pos()})
	}
	return sections
}

// maxCard is the largest number of lines of a doc.go, and maxPromises the largest number of its promises. A reader
// should see the whole page at once.
const (
	maxCard     = 70
	maxPromises = 8
)

// checkCard checks one package comment. Internal packages need no example.
func (s *source) checkCard(card *file, packages map[string][]*file) []finding {
	var found []finding
	if lines := s.set.Position(card.Package).Line; lines > maxCard {
		found = append(found, s.at(card, card.Package, "doc.go has %d lines; %d are the most", lines, maxCard))
	}
	sections := sectionsOf(card.Doc)
	last := -1
	for _, sec := range sections {
		i := slices.Index(headings, sec.heading)
		if i < 0 {
			continue
		}
		if i <= last {
			found = append(found, s.at(card, sec.pos, "section %q is out of order; the order is %s", sec.heading, strings.Join(headings, ", ")))
		}
		last = max(last, i)
		switch sec.heading {
		case "Promises":
			found = append(found, s.checkPromises(card, sec)...)
		case "Example":
			found = append(found, s.checkNames(card, sec, exampleNames, packages)...)
			found = append(found, s.checkCode(card, sec)...)
		}
	}
	required := []string{"Example", "Promises", "Concurrency"}
	if slices.Contains(strings.Split(card.pkg, "/"), "internal") {
		required = required[1:]
	}
	for _, heading := range required {
		if !slices.ContainsFunc(sections, func(sec section) bool { return sec.heading == heading }) {
			found = append(found, s.at(card, card.Doc.Pos(), "the comment of package %s has no section %q", card.pkg, heading))
		}
	}
	return found
}

// checkCode finds code that godoc would show as prose, because its lines do not begin with a tab.
func (s *source) checkCode(card *file, sec section) []finding {
	var found []finding
	for _, l := range sec.lines {
		if strings.Contains(l.text, ":= ") && !strings.HasPrefix(l.text, "\t") {
			found = append(found, s.at(card, l.pos, "a line of code begins with a tab"))
		}
	}
	return found
}

// mapPath is the page that names every package.
const mapPath = "internal/archtest/packages.md"

// checkMap finds packages of the library that the map of packages does not name.
func checkMap(s *source) []finding {
	page, err := fs.ReadFile(s.fs, mapPath)
	if err != nil {
		return []finding{{mapPath, 1, err.Error()}}
	}
	var found []finding
	for pkg := range s.packages() {
		top, _, _ := strings.Cut(pkg, "/")
		if top != "cmd" && top != "examples" && pkg != landingPage && !strings.Contains(string(page), "`"+pkg+"`") {
			found = append(found, finding{mapPath, 1, "no table names package " + pkg})
		}
	}
	return found
}

var (
	numbered     = regexp.MustCompile(`^\s+(\d+)\. `)
	exampleNames = regexp.MustCompile(`\b(?:(\w+)\.)?(Example(?:_?[A-Z]\w*)?)\b`)
)

// checkNames finds names of tests that do not exist. A name belongs to the package itself, or to the package that
// stands before it, as in informer.TestSimulation.
func (s *source) checkNames(card *file, sec section, names *regexp.Regexp, packages map[string][]*file) []finding {
	var found []finding
	for _, l := range sec.lines {
		for _, m := range names.FindAllStringSubmatch(l.text, -1) {
			pkg := card.pkg
			if _, known := packages[m[1]]; known {
				pkg = m[1]
			}
			if !s.testFunctions(pkg)[m[2]] {
				found = append(found, s.at(card, l.pos, "there is no %s in the tests of %s", m[2], pkg))
			}
		}
	}
	return found
}
