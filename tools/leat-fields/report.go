package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type readKind int

const (
	presence readKind = iota // whether the field is there, or how many elements it has
	whole                    // everything below the path
)

// use is the first read of a path.
type use struct {
	kind readKind
	at   token.Position
	own  bool // in a package that the patterns match
}

// note is an escape or a write.
type note struct {
	at   token.Position
	root *types.TypeName
	path string
	how  string
	in   string // the function
}

type comment struct {
	at    token.Position
	paths []string
}

// report collects what the flow finds.
type report struct {
	*world
	used     map[*types.TypeName]bool
	reads    map[*types.TypeName]map[string]use
	escapes  map[note]bool
	writes   map[note]bool
	comments map[string]comment // by file:line that they answer
	files    map[string]*ast.File
	wrong    error
}

func newReport(w *world) (*report, error) {
	r := &report{
		world: w, used: map[*types.TypeName]bool{}, reads: map[*types.TypeName]map[string]use{},
		escapes: map[note]bool{}, writes: map[note]bool{}, comments: map[string]comment{}, files: map[string]*ast.File{},
	}
	for _, p := range w.program {
		for _, f := range p.Syntax {
			name := w.set.Position(f.FileStart).Filename
			r.files[name] = f
			if err := r.addComments(name, f); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

const directive = "//leat:fields "

// addComments reads the comments of a file. One that is alone on its line answers for the next line.
func (r *report) addComments(name string, f *ast.File) error {
	var lines []string
	for _, group := range f.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, directive)
			if !ok {
				continue
			}
			if lines == nil {
				content, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				lines = strings.Split(string(content), "\n")
			}
			at := r.set.Position(c.Pos())
			line := at.Line
			if strings.HasPrefix(strings.TrimSpace(lines[line-1]), "//") {
				line++
			}
			paths := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
			r.comments[fmt.Sprint(name, ":", line)] = comment{at, paths}
		}
	}
	return nil
}

func (r *report) answer(pos token.Pos) (comment, bool) {
	at := r.set.Position(pos)
	c, ok := r.comments[fmt.Sprint(at.Filename, ":", at.Line)]
	return c, ok
}

func (r *report) answered(pos token.Pos) bool { _, ok := r.answer(pos); return ok }

// own reports whether a position is in the program.
func (r *report) own(pos token.Pos) bool {
	return r.files[r.set.Position(pos).Filename] != nil
}

func (r *report) uses(t *types.TypeName) { r.used[t] = true }

// read records that the program reads a field. The report shows the first position, and those in the program before
// those in libraries.
func (r *report) read(f fact, pos token.Pos, kind readKind) {
	if f.root == nil || f.path == "" && kind == presence {
		return
	}
	f.path = strings.TrimSuffix(f.path, "[*]") // all values are the whole map
	if r.reads[f.root] == nil {
		r.reads[f.root] = map[string]use{}
	}
	at := r.set.Position(pos)
	own := r.own(pos)
	old, found := r.reads[f.root][f.path]
	now := use{max(kind, old.kind), at, own}
	if found && (old.own && !own || old.own == own && !before(at, old.at)) {
		now.at, now.own = old.at, old.own
	}
	r.reads[f.root][f.path] = now
}

func before(a, b token.Position) bool {
	if a.Filename != b.Filename {
		return a.Filename < b.Filename
	}
	return a.Offset < b.Offset
}

// lose records that a value leaves the analysis. A comment at the line names the fields that are read then.
func (r *report) lose(f fact, pos token.Pos, how string, escapes bool) {
	c, ok := r.answer(pos)
	if !ok {
		r.read(f, pos, whole)
		if escapes || f.path == "" {
			r.escapes[note{r.set.Position(pos), f.root, f.path, how, ""}] = true
		}
		return
	}
	for _, path := range c.paths {
		if f.root != anyObject && at(f.root.Type(), path) == nil && r.wrong == nil {
			r.wrong = fmt.Errorf("%s: %s has no field %s", c.at, f.root.Type(), path)
		}
		r.read(fact{root: f.root, path: path}, pos, whole)
	}
}

func (r *report) write(root *types.TypeName, pos token.Pos, how string) {
	at := r.set.Position(pos)
	in := filepath.Base(at.Filename)
	if f := r.files[at.Filename]; f != nil {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && d.Pos() <= pos && pos < d.End() {
				in = fn.Name.Name
				if fn.Recv != nil {
					in = types.ExprString(fn.Recv.List[0].Type) + "." + in
				}
			}
		}
	}
	r.writes[note{at, root, "", how, in}] = true
}

// alwaysKept are the fields that every mask keeps.
var alwaysKept = func() (paths []string) {
	for name := range strings.FieldsSeq(`name namespace uid resourceVersion generation creationTimestamp ownerReferences
		finalizers deletionTimestamp deletionGracePeriodSeconds`) {
		paths = append(paths, "metadata."+name)
	}
	return append(paths, "apiVersion", "kind")
}()

// covers reports whether a mask with the path p keeps q.
func covers(p, q string) bool {
	rest, ok := strings.CutPrefix(q, p)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func coveredBy(paths []string, q string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return covers(p, q) })
}

// fields returns the paths that a mask for a type has to keep, with their first uses.
func (r *report) fields(root *types.TypeName) map[string]use {
	all := map[string]use{}
	add := func(path string, u use) {
		if old, ok := all[path]; ok && old.own && !u.own {
			u.at, u.own = old.at, old.own
		}
		if !coveredBy(alwaysKept, path) {
			all[path] = u
		}
	}
	for _, reads := range []map[string]use{r.reads[anyObject], r.reads[root]} {
		for path, u := range reads {
			switch {
			case path != "":
				if at(root.Type(), path) != nil {
					add(path, u)
				}
			default:
				for _, name := range names(container(root.Type())) {
					add(name, u)
				}
			}
		}
	}
	// A mask with a key of a map drops the other keys, so the number of all keys needs the whole map.
	for other := range all {
		if path, _, isKey := strings.Cut(other, `["`); isKey {
			if u, ok := all[path]; ok {
				u.kind = whole
				all[path] = u
			}
		}
	}
	result := map[string]use{}
	for path, u := range all {
		needed := true
		for other, o := range all {
			switch {
			case other == path:
			case covers(other, path) && o.kind == whole, covers(path, other) && u.kind == presence:
				needed = false
			}
		}
		if needed {
			result[path] = u
		}
	}
	return result
}

// names returns the names of the fields of a struct in JSON.
func names(t types.Type) (found []string) {
	s, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		switch path, ok := below("", s, i); {
		case ok && path == "":
			found = append(found, names(container(s.Field(i).Type()))...)
		case ok:
			found = append(found, path)
		}
	}
	return found
}

// types returns the types of objects that the program reads, sorted by package and name.
func (r *report) types() []*types.TypeName {
	found := maps.Clone(r.used)
	for t, reads := range r.reads {
		for _, u := range reads {
			found[t] = found[t] || u.own
		}
	}
	maps.DeleteFunc(found, func(t *types.TypeName, ok bool) bool { return t == anyObject || !ok })
	return slices.SortedFunc(maps.Keys(found), func(a, b *types.TypeName) int {
		return strings.Compare(a.Pkg().Path()+"\x00"+a.Name(), b.Pkg().Path()+"\x00"+b.Name())
	})
}

func full(t *types.TypeName) string {
	if t == anyObject {
		return "an object of any type"
	}
	return t.Pkg().Path() + "." + t.Name()
}

func sortedNotes(notes map[note]bool) []note {
	return slices.SortedFunc(maps.Keys(notes), func(a, b note) int {
		if a.at != b.at {
			if before(a.at, b.at) {
				return -1
			}
			return 1
		}
		return strings.Compare(full(a.root)+" "+a.path+a.how, full(b.root)+" "+b.path+b.how)
	})
}

// relative shortens the name of a file below the working directory.
func relative(at token.Position) string {
	if dir, err := os.Getwd(); err == nil {
		if name, err := filepath.Rel(dir, at.Filename); err == nil && !strings.HasPrefix(name, "..") {
			at.Filename = name
		}
	}
	return at.String()
}

func (e note) escape() string {
	assumed := "everything below " + e.path
	what := e.path + " of "
	if e.path == "" {
		what, assumed = "", "the whole object"
	}
	return fmt.Sprintf("%s: %s%s %s: assumes that it reads %s", relative(e.at), what, full(e.root), e.how, assumed)
}

func (e note) write() string {
	return fmt.Sprintf("%s: %s %s: it would remove what a mask leaves out", relative(e.at), full(e.root), e.how)
}

// text is the report for people.
func (r *report) text() string {
	var b strings.Builder
	for _, t := range r.types() {
		fmt.Fprintln(&b, full(t))
		fields := r.fields(t)
		width := 0
		for path := range fields {
			width = max(width, len(path))
		}
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&b, "\t%-*s  %s\n", width, path, relative(fields[path].at))
		}
		if len(fields) == 0 {
			fmt.Fprintln(&b, "\tonly fields that every mask keeps")
		}
	}
	for _, e := range sortedNotes(r.escapes) {
		fmt.Fprintln(&b, "escape:", e.escape())
	}
	for _, e := range sortedNotes(r.writes) {
		fmt.Fprintln(&b, "write:", e.write())
	}
	return b.String()
}

const header = "// Code generated by leat-fields; DO NOT EDIT."

// acknowledgement is the line of the generated file that names a write.
func (e note) acknowledgement() string { return fmt.Sprintf("%s: %s %s", e.in, full(e.root), e.how) }

// source is the generated file.
func (r *report) source(pkg string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\npackage %s\n", header, pkg)
	if len(r.writes) > 0 {
		fmt.Fprint(&b, "\n// These functions write whole objects, and would remove what a mask leaves out:\n//\n")
		lines := map[string]bool{}
		for e := range r.writes {
			lines[e.acknowledgement()] = true
		}
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&b, "//\t%s\n", line)
		}
	}
	variables := r.variables()
	for _, t := range r.types() {
		fmt.Fprintf(&b, "\n// %s are the fields of %s that this program reads.\nvar %[1]s = []string{", variables[t], full(t))
		paths := slices.Sorted(maps.Keys(r.fields(t)))
		for _, path := range paths {
			fmt.Fprintf(&b, "\n\t%q,", path)
		}
		if len(paths) > 0 {
			fmt.Fprintln(&b)
		}
		fmt.Fprintln(&b, "}")
	}
	return b.Bytes()
}

// variables names the variable of each type. Types of the same name get the last parts of their package's path too.
func (r *report) variables() map[*types.TypeName]string {
	count, result := map[string]int{}, map[*types.TypeName]string{}
	for _, t := range r.types() {
		count[t.Name()]++
	}
	for _, t := range r.types() {
		prefix := ""
		if count[t.Name()] > 1 {
			for _, part := range strings.FieldsFunc(t.Pkg().Path(), func(c rune) bool { return strings.ContainsRune("/.-", c) }) {
				prefix += strings.ToUpper(part[:1]) + part[1:]
			}
		}
		result[t] = prefix + t.Name() + "Fields"
	}
	return result
}
