package main

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"
)

// fact is one thing that is known of a value. Exactly one of root, cell and fn is set. Pointers, lists and channels are
// transparent: a pointer to a value, and a list that contains it, have the facts of the value.
type fact struct {
	root *types.TypeName // the value is at path in an object of this type, or anyObject
	path string
	cell *node         // the value may point to this variable
	fn   *ssa.Function // the value may be this function
}

// node is a value or a variable, with the facts that have arrived, and the functions that get each of them once.
type node struct {
	facts map[fact]bool
	order []fact
	subs  []func(fact)
	typ   types.Type // of a variable's value
	made  bool       // the variable is made by an expression of the program
	holds types.Type // the struct that the values are below pointers, lists and maps, or nil
}

type arrival struct {
	at *node
	fact
}

// flow computes the facts of all values of the functions that the program reaches. It does not know the order of
// statements, and all calls of a function share one set of facts.
type flow struct {
	*world
	*apis
	*report
	nodes     map[any]*node
	canonical typeutil.Map // type: the first identical one
	queue     []arrival
	visited   map[*ssa.Function]bool
	called    map[*ssa.Function]bool // from a function that was visited
	typeAt    map[fact]types.Type
	inside    bool                             // a function of the program is visited
	entries   map[*ssa.Function]entry          // called from code that the analysis does not follow
	values    []*ssa.Function                  // used other than by a call
	dynamic   []ssa.CallInstruction            // calls of function values, and of methods of the program's interfaces
	bound     map[ssa.CallInstruction]bool     // those whose functions are known
	outside   map[string][]*types.Interface    // by the name of a method: those of other packages than the program's
	invokes   map[string][]ssa.CallInstruction // by the name of the method
	converted map[types.Type]bool              // types of values that became interfaces
	concrete  map[string][]types.Type          // by the name of a method: these types
	meta      types.Type                       // ObjectMeta
	isProgram map[*types.Package]bool
}

// entry is how code that is not followed calls a function; see enter.
type entry int

const (
	entered entry = 1 << iota
	withObjects
	withReturns
)

// The kinds of nodes besides ssa.Value.
type (
	tupleKey struct { // one of the results of a call, of a lookup and so on
		value ssa.Value
		index int
	}
	resultKey struct {
		fn    *ssa.Function
		index int
	}
	fieldKey struct { // a field of all structs of a type that is no part of an object
		typ   types.Type
		index int
	}
	elementKey struct{ typ types.Type } // the elements of all maps and channels of a type, and of lists with such elements
)

func (a *flow) node(key any) *node {
	n := a.nodes[key]
	if n == nil {
		n = &node{facts: map[fact]bool{}}
		a.nodes[key] = n
		n.holds = typeOf(key)
		switch v := key.(type) {
		case *ssa.Alloc, *ssa.MakeSlice, *ssa.MakeMap, *ssa.MakeChan, *ssa.Global:
			n.typ, n.made = v.(ssa.Value).Type(), true
			a.add(n, fact{cell: n})
			if g, ok := key.(*ssa.Global); ok && !a.followed[g.Pkg.Pkg] {
				a.seed(n, g.Type(), false)
			}
		case *ssa.Function:
			a.values = append(a.values, v)
			a.add(n, fact{fn: v})
			if v.Parent() != nil {
				a.visit(v)
			}
		}
	}
	return n
}

// typeOf returns the type of the struct that a node's values have below pointers, lists and maps, or nil.
func typeOf(key any) types.Type {
	var t types.Type
	switch k := key.(type) {
	case ssa.Value:
		t = k.Type()
	case resultKey:
		t = k.fn.Signature.Results().At(k.index).Type()
	case fieldKey:
		t = k.typ.Underlying().(*types.Struct).Field(k.index).Type()
	default:
		return nil
	}
	if t = core(t); leaf(t) {
		return nil
	}
	if _, ok := t.Underlying().(*types.Struct); !ok {
		return nil
	}
	return t
}

// suits reports whether the values of a node may be what a fact says. This drops what calls of one function with
// objects of several types have mixed.
func (a *flow) suits(n *node, f fact) bool {
	if n.holds == nil || f.root == nil {
		return true
	}
	t, known := a.typeAt[f]
	if !known {
		switch rest, inMeta := strings.CutPrefix(f.path, "metadata"); {
		case f.root != anyObject:
			t = at(f.root.Type(), f.path)
		case inMeta && a.meta != nil:
			t = at(a.meta, strings.TrimPrefix(rest, "."))
		}
		a.typeAt[f] = t
	}
	return t == nil && (f.root != anyObject || f.path != "") || t != nil && inlines(core(t), n.holds)
}

// inlines reports whether a struct is part, or has it among its fields that are inline in JSON.
func inlines(t, part types.Type) bool {
	if types.Identical(t, part) {
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		if path, inJSON := below("", s, i); inJSON && path == "" && inlines(core(s.Field(i).Type()), part) {
			return true
		}
	}
	return false
}

func (a *flow) same(t types.Type) types.Type {
	if found := a.canonical.At(t); found != nil {
		return found.(types.Type)
	}
	a.canonical.Set(t, t)
	return t
}

func (a *flow) field(t types.Type, i int) *node {
	n := a.node(fieldKey{a.same(t), i})
	if n.typ == nil {
		n.typ = t.Underlying().(*types.Struct).Field(i).Type()
		a.add(n, fact{cell: n})
	}
	return n
}

func (a *flow) elements(t types.Type) *node { return a.node(elementKey{a.same(container(t))}) }

// deepest is the number of steps in the longest path that is followed. A type that contains itself, as a JSON schema
// does, has paths without end. A program that follows one reads everything below.
const deepest = 16

func (a *flow) add(n *node, f fact) {
	if strings.Count(f.path, ".")+strings.Count(f.path, "[") >= deepest {
		a.read(f, token.NoPos, whole)
		return
	}
	if !n.facts[f] && a.suits(n, f) {
		n.facts[f] = true
		n.order = append(n.order, f)
		a.queue = append(a.queue, arrival{n, f})
	}
}

// each calls do for every fact of n, now and later.
func (a *flow) each(n *node, do func(fact)) {
	n.subs = append(n.subs, do)
	for i := 0; i < len(n.order); i++ {
		do(n.order[i])
	}
}

func (a *flow) copy(from, to *node) {
	if from != to {
		a.each(from, func(f fact) { a.add(to, f) })
	}
}

// move copies the facts to a value of type t. Values without fields carry no facts, so they are read here.
func (a *flow) move(from, to *node, t types.Type, pos token.Pos) {
	if leaf(t) {
		a.readAll(from, pos)
	} else {
		a.copy(from, to)
	}
}

func (a *flow) readAll(n *node, pos token.Pos) {
	a.each(n, func(f fact) { a.read(f, pos, whole) })
}

func (a *flow) run() {
	for len(a.queue) > 0 {
		next := a.queue[0]
		a.queue = a.queue[1:]
		for i := 0; i < len(next.at.subs); i++ {
			next.at.subs[i](next.fact)
		}
	}
}

// analyse visits the functions of the program, and those that they reach.
func analyse(w *world, known *apis, r *report, all []*ssa.Function) {
	a := &flow{
		world: w, apis: known, report: r, nodes: map[any]*node{}, visited: map[*ssa.Function]bool{},
		called: map[*ssa.Function]bool{}, entries: map[*ssa.Function]entry{}, converted: map[types.Type]bool{},
		isProgram: map[*types.Package]bool{}, invokes: map[string][]ssa.CallInstruction{},
	}
	for _, p := range w.program {
		a.isProgram[p.Types] = true
	}
	a.typeAt, a.concrete, a.bound = map[fact]types.Type{}, map[string][]types.Type{}, map[ssa.CallInstruction]bool{}
	a.findInterfaces()
	for _, p := range w.all {
		if p.Path() == metaPath {
			a.meta = p.Scope().Lookup("ObjectMeta").Type()
		}
	}
	for _, fn := range all {
		a.visit(fn)
	}
	for before := -1; before != len(a.visited)+len(a.entries); {
		before = len(a.visited) + len(a.entries)
		a.run()
		for _, fn := range all { // nothing that is followed calls it, so other code does
			if !a.called[fn] && a.entries[fn] == 0 {
				a.enter(fn, false, false)
			}
		}
		for _, fn := range a.values { // the flow has lost it
			if !a.called[fn] && a.entries[fn] == 0 && a.visited[fn] {
				a.enter(fn, true, true)
			}
		}
		a.run()
		for i := 0; i < len(a.dynamic); i++ {
			if call := a.dynamic[i]; !a.bound[call] {
				a.bound[call] = true
				a.leave(call, "a function that is not known here", effectEscape)
			}
		}
		a.run()
	}
}

// visit makes the nodes of a function's instructions, and the subscriptions between them.
func (a *flow) visit(fn *ssa.Function) {
	if a.visited[fn] || len(fn.Blocks) == 0 {
		return
	}
	a.visited[fn] = true
	outer := a.inside
	a.inside = a.own(fn.Pos())
	defer func() { a.inside = outer }()
	for _, b := range fn.Blocks {
		for _, i := range b.Instrs {
			a.instruction(fn, i)
		}
	}
}

// enter marks a function as called from code that is not followed. With objects, a parameter of type any is an object.
// With returns, this code may also encode the structs that the function returns.
func (a *flow) enter(fn *ssa.Function, objects, returns bool) {
	how := entered
	if objects {
		how |= withObjects
	}
	if returns {
		how |= withReturns
	}
	if fn == nil || a.entries[fn]|how == a.entries[fn] {
		return
	}
	a.entries[fn] |= how
	a.visit(fn)
	a.inside = a.own(fn.Pos())
	for _, p := range fn.Params {
		a.seed(a.node(p), p.Type(), objects)
	}
	for i := range fn.Signature.Results().Len() {
		if returns {
			a.sinkType(fn.Signature.Results().At(i).Type(), fn.Pos(), "is returned by "+fn.Name(), false, 0)
		}
		a.each(a.node(resultKey{fn, i}), func(f fact) {
			if f.fn != nil {
				a.enter(f.fn, objects, returns)
			} else if f.root != nil && f.path != "" {
				a.lose(f, fn.Pos(), "is returned by "+fn.Name(), false)
			}
		})
	}
}

// seed marks a value that comes from code that is not followed.
func (a *flow) seed(n *node, t types.Type, objects bool) {
	t = core(t)
	if o := object(t); o != nil {
		if a.inside {
			a.uses(o)
		}
		a.add(n, fact{root: o})
	} else if anyOf(t) || objects && types.IsInterface(t) && t.Underlying().(*types.Interface).Empty() {
		a.add(n, fact{root: anyObject})
	}
}
