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
	entries   map[*ssa.Function]bool           // called from code that the analysis does not follow
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

func (a *flow) add(n *node, f fact) {
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
		called: map[*ssa.Function]bool{}, entries: map[*ssa.Function]bool{}, converted: map[types.Type]bool{},
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
			if !a.called[fn] && !a.entries[fn] {
				a.enter(fn, false, false)
			}
		}
		for _, fn := range a.values { // the flow has lost it
			if !a.called[fn] && !a.entries[fn] && a.visited[fn] {
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
	if fn == nil || a.entries[fn] {
		return
	}
	a.entries[fn] = true
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

func deref(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

func position(i ssa.Instruction) token.Pos {
	if i.Pos().IsValid() {
		return i.Pos()
	}
	var operands [8]*ssa.Value
	for _, o := range i.Operands(operands[:0]) {
		if v := *o; v != nil && v.Pos().IsValid() && v.Parent() == i.Parent() {
			return v.Pos()
		}
	}
	return i.Parent().Pos()
}

func (a *flow) instruction(fn *ssa.Function, instr ssa.Instruction) {
	pos := position(instr)
	if v, ok := instr.(ssa.Value); ok {
		a.node(v)
	}
	switch i := instr.(type) {
	case *ssa.Phi:
		for _, e := range i.Edges {
			a.move(a.node(e), a.node(i), i.Type(), pos)
		}
	case *ssa.ChangeType:
		a.convert(i.X, i, pos)
	case *ssa.Convert:
		a.convert(i.X, i, pos)
	case *ssa.MultiConvert:
		a.convert(i.X, i, pos)
	case *ssa.ChangeInterface:
		a.copy(a.node(i.X), a.node(i))
		a.becomeInterface(i.X.Type(), i.Type())
	case *ssa.SliceToArrayPointer:
		a.move(a.node(i.X), a.node(i), i.Type(), pos)
	case *ssa.Slice:
		a.move(a.node(i.X), a.node(i), i.Type(), pos)
	case *ssa.MakeInterface:
		a.move(a.node(i.X), a.node(i), i.X.Type(), pos)
		a.becomeInterface(i.X.Type(), i.Type())
	case *ssa.TypeAssert:
		a.assert(i, pos)
	case *ssa.UnOp:
		a.unary(i, pos)
	case *ssa.BinOp:
		if i.Op == token.EQL || i.Op == token.NEQ {
			a.compare(i.X, i.Y, pos)
			a.compare(i.Y, i.X, pos)
		}
	case *ssa.FieldAddr:
		a.selectField(i, i.X, i.Field, pos)
	case *ssa.Field:
		a.selectField(i, i.X, i.Field, pos)
	case *ssa.IndexAddr:
		a.index(i, i.X, pos)
	case *ssa.Index:
		a.index(i, i.X, pos)
	case *ssa.Lookup:
		a.lookup(i, pos)
	case *ssa.Next:
		if r, ok := i.Iter.(*ssa.Range); ok && !i.IsString {
			m := r.X.Type().Underlying().(*types.Map)
			to := a.node(tupleKey{i, 2})
			a.each(a.node(r.X), func(f fact) { a.element(f, "[*]", m.Elem(), to, pos, true) })
			for n, t := range map[int]types.Type{1: m.Key(), 2: m.Elem()} {
				if to := a.node(tupleKey{i, n}); !leaf(t) {
					a.copy(a.elements(r.X.Type()), to)
					a.seed(to, t, false)
				}
			}
		}
	case *ssa.Extract:
		from := a.node(tupleKey{i.Tuple, i.Index})
		a.move(from, a.node(i), i.Type(), pos)
		if s, ok := i.Tuple.(*ssa.Select); ok && i.Index >= 2 {
			a.seed(a.node(i), i.Type(), false)
			for _, state := range s.States {
				if state.Dir == types.RecvOnly {
					a.copy(a.elements(state.Chan.Type()), a.node(i))
				}
			}
		}
	case *ssa.Store:
		a.store(i.Addr, i.Val, pos)
	case *ssa.MapUpdate:
		if _, isPointer := i.Key.Type().Underlying().(*types.Pointer); isPointer {
			a.copy(a.node(i.Key), a.elements(i.Map.Type()))
		} else {
			a.sinkParts(i.Key, pos, "is a key of a map")
		}
		a.copy(a.node(i.Value), a.elements(i.Map.Type()))
		if a.part(container(i.Value.Type())) && object(i.Value.Type()) == nil {
			a.sinkIntoParts(i.Map, i.Value, pos)
		}
	case *ssa.Send:
		a.copy(a.node(i.X), a.elements(i.Chan.Type()))
	case *ssa.Select:
		for _, s := range i.States {
			if s.Dir == types.SendOnly {
				a.copy(a.node(s.Send), a.elements(s.Chan.Type()))
			}
		}
	case *ssa.Panic:
		a.sink(a.node(i.X), i.X, pos, "is the value of a panic", effectEscape)
	case *ssa.Return:
		for n, v := range i.Results {
			a.copy(a.node(v), a.node(resultKey{fn, n}))
		}
	case *ssa.MakeClosure:
		f := i.Fn.(*ssa.Function)
		a.visit(f)
		a.values = append(a.values, f)
		a.add(a.node(i), fact{fn: f})
		for n, b := range i.Bindings {
			a.copy(a.node(b), a.node(f.FreeVars[n]))
		}
	case ssa.CallInstruction:
		a.call(i, pos)
	}
}

// convert copies facts to another type. Fields of a struct type that no object has can't be followed.
func (a *flow) convert(x, to ssa.Value, pos token.Pos) {
	t := container(to.Type())
	switch {
	case isUnsafe(to.Type()):
		a.sink(a.node(x), x, pos, "becomes an unsafe.Pointer", effectEscape)
	case !leaf(t) && !types.Identical(t, container(x.Type())) && typeOf(x) != nil:
		a.sink(a.node(x), x, pos, "is converted to "+t.String(), effectWhole)
	default:
		a.move(a.node(x), a.node(to), to.Type(), pos)
	}
	if isUnsafe(x.Type()) {
		a.seed(a.node(to), to.Type(), false)
	}
}

func isUnsafe(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// assert lets those facts pass that fit the type. An object of a concrete type is a new object: the flow may not know
// where it is from.
func (a *flow) assert(i *ssa.TypeAssert, pos token.Pos) {
	to := a.node(i)
	if i.CommaOk {
		to = a.node(tupleKey{i, 0})
	}
	if types.IsInterface(i.AssertedType) {
		a.becomeInterface(i.X.Type(), i.AssertedType)
	}
	if object(i.AssertedType) != nil {
		a.seed(to, i.AssertedType, false)
		a.each(a.node(i.X), func(f fact) {
			if f.cell != nil {
				a.add(to, f)
			}
		})
		return
	}
	a.each(a.node(i.X), func(f fact) {
		switch {
		case f.root != nil && f.path == "" && !types.IsInterface(i.AssertedType):
		case leaf(i.AssertedType):
			a.read(f, pos, whole)
		default:
			a.add(to, f)
		}
	})
}

func (a *flow) unary(i *ssa.UnOp, pos token.Pos) {
	switch i.Op {
	case token.MUL:
		a.move(a.node(i.X), a.node(i), i.Type(), pos)
		if _, isPointer := i.Type().Underlying().(*types.Pointer); isPointer && object(i.Type()) != nil && !local(i.X) {
			a.seed(a.node(i), i.Type(), false)
		}
		switch i.X.(type) {
		case *ssa.FieldAddr, *ssa.Alloc, *ssa.Global, *ssa.FreeVar:
		default:
			if !leaf(i.Type()) {
				a.copy(a.elements(i.X.Type()), a.node(i))
			}
		}
	case token.ARROW:
		to := a.node(i)
		if i.CommaOk {
			to = a.node(tupleKey{i, 0})
		}
		elem := i.X.Type().Underlying().(*types.Chan).Elem()
		if !leaf(elem) {
			a.copy(a.elements(i.X.Type()), to)
			a.seed(to, elem, false)
		}
	}
}

// local reports whether only functions that are followed use a variable, so that the flow knows all that it holds.
func local(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.FreeVar:
		return true
	case *ssa.Alloc:
		for _, r := range *v.Referrers() {
			switch r := r.(type) {
			case *ssa.Store:
				if r.Val == v {
					return false
				}
			case *ssa.UnOp, *ssa.MakeClosure, *ssa.DebugRef:
			default:
				return false
			}
		}
		return true
	}
	return false
}

// delivers reports whether a struct type is one of the libraries that deliver objects, such as an event with an object.
func (a *flow) delivers(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && isDelivery(n.Obj().Pkg().Path())
}

func isDelivery(path string) bool {
	return strings.HasPrefix(path, "k8s.io/client-go/") || strings.HasPrefix(path, "sigs.k8s.io/controller-runtime/") ||
		strings.HasPrefix(path, "github.com/leatproject/leat/")
}

func (a *flow) compare(x, y ssa.Value, pos token.Pos) {
	if c, ok := y.(*ssa.Const); ok && c.IsNil() {
		a.each(a.node(x), func(f fact) { a.read(f, pos, presence) })
	} else {
		a.sinkParts(x, pos, "is compared")
	}
}

// sinkParts counts a value as read, except if it is a pointer. An object in an interface is a pointer.
func (a *flow) sinkParts(v ssa.Value, pos token.Pos, how string) {
	if _, isPointer := v.Type().Underlying().(*types.Pointer); !isPointer {
		a.each(a.node(v), func(f fact) {
			if f.root != nil && (f.path != "" || !types.IsInterface(v.Type())) {
				a.lose(f, pos, how, false)
			}
		})
	}
}

// selectField follows the selection of a field, of a value or by an address.
func (a *flow) selectField(i ssa.Value, x ssa.Value, index int, pos token.Pos) {
	t := deref(x.Type())
	s := t.Underlying().(*types.Struct)
	if !a.part(t) && !leaf(t) {
		n := a.field(t, index)
		if !leaf(i.Type()) {
			a.copy(n, a.node(i))
			n, isNamed := types.Unalias(t).(*types.Named)
			if foreign := isNamed && n.Obj().Pkg() != nil && !a.followed[n.Obj().Pkg()]; foreign || object(i.Type()) != nil {
				a.seed(a.node(i), i.Type(), a.delivers(t))
			}
		}
		return
	}
	if onlyWritten(i) {
		return
	}
	a.each(a.node(x), func(f fact) {
		if f.root == nil {
			return
		}
		if leaf(t) {
			a.read(f, pos, whole)
			return
		}
		path, ok := below(f.path, s, index)
		switch {
		case !ok:
		case strings.Count(path, ".") > 14: // a type that contains itself
			a.read(f, pos, whole)
		case leaf(i.Type()):
			a.read(fact{root: f.root, path: path}, pos, whole)
		default:
			a.add(a.node(i), fact{root: f.root, path: path})
		}
	})
}

// onlyWritten reports whether an address is used for nothing but stores.
func onlyWritten(v ssa.Value) bool {
	if _, isAddress := v.Type().Underlying().(*types.Pointer); !isAddress || v.Referrers() == nil || len(*v.Referrers()) == 0 {
		return false
	}
	for _, r := range *v.Referrers() {
		switch r := r.(type) {
		case *ssa.Store:
			if r.Addr != v {
				return false
			}
		case *ssa.FieldAddr:
			if !leaf(v.Type()) || !onlyWritten(r) {
				return false
			}
		case *ssa.DebugRef:
		default:
			return false
		}
	}
	return true
}

func (a *flow) index(i, x ssa.Value, pos token.Pos) {
	if onlyWritten(i) {
		a.copy(a.node(x), a.node(i)) // a store needs the list's variables
		return
	}
	a.move(a.node(x), a.node(i), i.Type(), pos)
	if object(i.Type()) != nil {
		a.seed(a.node(i), i.Type(), false)
	}
}

func (a *flow) lookup(i *ssa.Lookup, pos token.Pos) {
	m, ok := i.X.Type().Underlying().(*types.Map)
	if !ok {
		return // a byte of a string
	}
	a.sinkParts(i.Index, pos, "is a key of a map")
	to := a.node(i)
	if i.CommaOk {
		to = a.node(tupleKey{i, 0})
	}
	key := "[*]"
	if c, ok := i.Index.(*ssa.Const); ok && c.Value != nil && leaf(m.Elem()) {
		key = "[" + c.Value.ExactString() + "]"
		if !strings.HasPrefix(key, `["`) {
			key = "[*]"
		}
	}
	a.each(a.node(i.X), func(f fact) { a.element(f, key, m.Elem(), to, pos, false) })
	if !leaf(m.Elem()) {
		a.copy(a.elements(i.X.Type()), to)
		a.seed(to, m.Elem(), false)
	}
}

// element follows the selection of a map's value.
func (a *flow) element(f fact, key string, elem types.Type, to *node, pos token.Pos, ranged bool) {
	switch {
	case f.root == nil || f.path == "":
		a.add(to, f)
	case leaf(elem) && key == "[*]":
		a.read(f, pos, whole)
	case leaf(elem):
		a.read(fact{root: f.root, path: f.path + key}, pos, whole)
	default:
		if ranged {
			a.read(f, pos, presence)
		}
		a.add(to, fact{root: f.root, path: f.path + "[*]"})
	}
}

// store follows an assignment. What the program stores in a part of an object is counted as read, so that the object
// need not be followed for it.
func (a *flow) store(addr, val ssa.Value, pos token.Pos) {
	if leaf(val.Type()) {
		return
	}
	from := a.node(val)
	switch to := addr.(type) {
	case *ssa.FieldAddr:
		t := deref(to.X.Type())
		if a.part(t) {
			objects := a.node(to.X)
			a.sinkStored(val, pos, func(f fact) bool {
				for o := range objects.facts {
					if path, ok := below(o.path, t.Underlying().(*types.Struct), to.Field); ok && o.root == f.root && path == f.path {
						return true
					}
				}
				return false
			})
			return
		}
		a.copy(from, a.field(t, to.Field))
		if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && !a.followed[n.Obj().Pkg()] && !isList(t) {
			effect := effectEscape
			if a.delivers(t) {
				effect = effectKeep
			}
			a.sinkObjects(from, val, pos, "is stored in a field of "+n.Obj().Name(), effect, a.delivers(t))
		}
		return
	case *ssa.Alloc, *ssa.Global:
		a.copy(from, a.node(to))
		return
	case *ssa.IndexAddr:
		if _, ok := to.X.(*ssa.Alloc); !ok {
			a.copy(from, a.elements(val.Type()))
			a.sinkIntoParts(to.X, val, pos)
		}
	case *ssa.FreeVar:
	default:
		a.copy(from, a.elements(val.Type()))
		if object(val.Type()) == nil {
			a.sinkIntoParts(addr, val, pos)
		}
	}
	a.each(a.node(addr), func(f fact) {
		if f.cell != nil && fits(f.cell.typ, val.Type()) {
			a.copy(from, f.cell)
		}
	})
}

// sinkIntoParts counts a value as read if it is stored by an address inside of an object, but not in its own place.
func (a *flow) sinkIntoParts(addr, val ssa.Value, pos token.Pos) {
	done, to := false, a.node(addr)
	a.each(to, func(f fact) {
		if f.root != nil && f.path != "" && !done {
			done = true
			a.sinkStored(val, pos, func(f fact) bool { return to.facts[f] })
		}
	})
}

// sinkStored counts what is stored in a part of an object as read. isOwn reports whether a value is from this place.
func (a *flow) sinkStored(val ssa.Value, pos token.Pos, isOwn func(fact) bool) {
	a.each(a.node(val), func(f fact) {
		if f.root != nil && !isOwn(f) {
			a.lose(f, pos, "is stored in an object", false)
		}
	})
}

// fits reports whether a variable may hold a value: their types are the same below pointers, lists and maps.
func fits(variable, value types.Type) bool {
	v, w := core(variable), core(value)
	return types.IsInterface(v) || types.IsInterface(w) || types.Identical(v, w)
}

func core(t types.Type) types.Type {
	for {
		t = container(t)
		switch u := t.Underlying().(type) {
		case *types.Map:
			t = u.Elem()
		case *types.Chan:
			t = u.Elem()
		default:
			return t
		}
	}
}
