package main

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// This file has the rules for each kind of instruction, except calls.

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
			for n, t := range []types.Type{m.Key(), m.Elem()} {
				if to := a.node(tupleKey{i, n + 1}); !leaf(t) {
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
		switch x := i.X.(type) { // a container such as sync.Map returns what it got as any
		case *ssa.Call:
			a.seedResult(to, x, i.AssertedType)
		case *ssa.Extract:
			if call, ok := x.Tuple.(*ssa.Call); ok {
				a.seedResult(to, call, i.AssertedType)
			}
		}
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

// seedResult marks a result of a call that is asserted to be an object, unless the function is followed.
func (a *flow) seedResult(to *node, call *ssa.Call, t types.Type) {
	if fn := call.Call.StaticCallee(); fn == nil || len(fn.Blocks) == 0 {
		a.seed(to, t, false)
	}
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
