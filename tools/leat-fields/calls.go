package main

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// findInterfaces collects the interfaces that packages outside of the program declare, and the types whose values
// become interfaces when packages that are followed are initialized.
func (a *flow) findInterfaces() {
	a.outside = map[string][]*types.Interface{}
	for _, p := range a.all {
		for _, name := range p.Scope().Names() {
			t := p.Scope().Lookup(name)
			if i, ok := t.Type().Underlying().(*types.Interface); ok && !a.isProgram[p] && t.Exported() {
				if n, ok := t.Type().(*types.Named); ok && n.TypeParams().Len() == 0 {
					for m := range i.Methods() {
						a.outside[m.Name()] = append(a.outside[m.Name()], i)
					}
				}
			}
		}
		if !a.followed[p] {
			continue
		}
		for _, b := range a.prog.Package(p).Func("init").Blocks {
			for _, i := range b.Instrs {
				if m, ok := i.(*ssa.MakeInterface); ok {
					a.becomeInterface(m.X.Type(), m.Type())
				}
			}
		}
	}
}

// becomeInterface notes that values of a type are in interfaces. Then code that calls methods of such an interface may
// call its methods, and so may code that is not followed.
func (a *flow) becomeInterface(t, to types.Type) {
	n, ok := types.Unalias(deref(t)).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || object(n) != nil || a.part(n) || isList(t) || types.IsInterface(t) && !a.foreign(t) {
		return
	}
	set := a.prog.MethodSets.MethodSet(t)
	if generic, ok := types.Unalias(to).(*types.Named); ok && generic.TypeArgs().Len() > 0 &&
		!a.isProgram[generic.Obj().Pkg()] && !a.foreign(t) {
		for m := range to.Underlying().(*types.Interface).Methods() {
			a.enter(a.prog.LookupMethod(t, m.Pkg(), m.Name()), true, true)
		}
	}
	if t = a.same(t); a.converted[t] {
		return
	}
	a.converted[t] = true
	for m := range set.Len() {
		method := set.At(m)
		name := method.Obj().Name()
		a.concrete[name] = append(a.concrete[name], t)
		for _, outer := range a.outside[name] {
			if !a.foreign(t) && types.Implements(t, outer) {
				a.enter(a.prog.MethodValue(method), true, true)
				break
			}
		}
		for _, call := range a.invokes[name] {
			a.bindMethod(call, t)
		}
	}
}

// foreign reports whether the methods of a type are not followed.
func (a *flow) foreign(t types.Type) bool {
	n, ok := types.Unalias(deref(t)).(*types.Named)
	return ok && !a.followed[n.Obj().Pkg()]
}

// isList reports whether a type is a list of objects, or another document of the API.
func isList(t types.Type) bool {
	m, index, _ := types.LookupFieldOrMethod(types.NewPointer(deref(t)), false, nil, "DeepCopyObject")
	return m != nil && len(index) == 1
}

// bindMethod connects the call of an interface's method with that of a type, if it has the interface.
func (a *flow) bindMethod(call ssa.CallInstruction, t types.Type) {
	c := call.Common()
	if !types.Implements(t, c.Value.Type().Underlying().(*types.Interface)) {
		return
	}
	if !a.foreign(t) {
		a.bound[call] = true
		a.bind(call, a.prog.LookupMethod(t, c.Method.Pkg(), c.Method.Name()))
	} else if m, _, _ := types.LookupFieldOrMethod(t, true, c.Method.Pkg(), c.Method.Name()); a.followed[c.Method.Pkg()] {
		a.bound[call] = true
		name := fullName(m.(*types.Func))
		effect, known := summary(name)
		if !known {
			effect = effectEscape
		}
		a.leave(call, name, effect)
	}
}

// call follows a call: into functions with a body, by a summary, or not at all.
func (a *flow) call(call ssa.CallInstruction, pos token.Pos) {
	c := call.Common()
	if a.answered(pos) {
		a.leave(call, "", effectEscape)
		return
	}
	if c.IsInvoke() {
		a.invoke(call)
		return
	}
	switch f := c.Value.(type) {
	case *ssa.Builtin:
		a.builtin(call, f.Name(), pos)
	case *ssa.Function:
		a.static(call, f)
	default:
		if m, ok := f.(*ssa.MakeClosure); ok {
			a.bind(call, m.Fn.(*ssa.Function))
			return
		}
		name := variable(f)
		if effect, known := summary(name); known {
			a.leave(call, name, effect)
			return
		}
		a.dynamic = append(a.dynamic, call)
		a.each(a.node(f), func(found fact) {
			if found.fn != nil {
				a.bound[call] = true
				a.static(call, found.fn)
			}
		})
	}
}

// variable returns the full name of the variable that holds a function, as ctrl.SetControllerReference does, or "".
func variable(f ssa.Value) string {
	if load, ok := f.(*ssa.UnOp); ok {
		if g, ok := load.X.(*ssa.Global); ok {
			return g.Pkg.Pkg.Path() + "." + g.Name()
		}
	}
	return ""
}

// static follows the call of a known function.
func (a *flow) static(call ssa.CallInstruction, fn *ssa.Function) {
	name, origin := "", fn
	if fn.Origin() != nil {
		origin = fn.Origin()
	}
	if o, ok := origin.Object().(*types.Func); ok {
		name = fullName(o)
	}
	effect, known := summary(name)
	printed, isFormat := formatted(name, call.Common().Args)
	switch {
	case known:
		a.leave(call, name, effect)
	case isFormat:
		for _, arg := range printed {
			if leaf(arg.Type()) {
				a.readAll(a.node(arg), call.Pos())
			} else {
				a.sink(a.node(arg), arg, call.Pos(), "is passed to "+name, effectEscape)
			}
		}
	case len(fn.Blocks) > 0:
		a.bind(call, fn)
	default:
		a.leave(call, name, effectEscape)
	}
}

// bind connects a call with the body of a function.
func (a *flow) bind(call ssa.CallInstruction, fn *ssa.Function) {
	a.visit(fn)
	if call.Parent() != fn {
		a.called[fn] = true
	}
	args := call.Common().Args
	if call.Common().IsInvoke() {
		args = append([]ssa.Value{call.Common().Value}, args...)
	}
	for i, p := range fn.Params {
		if i < len(args) {
			a.move(a.node(args[i]), a.node(p), p.Type(), call.Pos())
		}
	}
	a.results(call, func(i int, to *node, t types.Type) { a.move(a.node(resultKey{fn, i}), to, t, call.Pos()) })
}

// results calls do for each result of a call.
func (a *flow) results(call ssa.CallInstruction, do func(i int, to *node, t types.Type)) {
	v := call.Value()
	if v == nil {
		return
	}
	r := call.Common().Signature().Results()
	for i := range r.Len() {
		if r.Len() == 1 {
			do(i, a.node(v), r.At(i).Type())
		} else {
			do(i, a.node(tupleKey{v, i}), r.At(i).Type())
		}
	}
}

// invoke follows the call of an interface's method: of each type that has it, and of objects.
func (a *flow) invoke(call ssa.CallInstruction) {
	c := call.Common()
	name := fullName(c.Method)
	effect, known := summary(name)
	if known {
		a.leave(call, name, effect)
	}
	a.invokes[c.Method.Name()] = append(a.invokes[c.Method.Name()], call)
	for i := 0; i < len(a.concrete[c.Method.Name()]); i++ {
		a.bindMethod(call, a.concrete[c.Method.Name()][i])
	}
	if known {
		return
	}
	a.each(a.node(c.Value), func(f fact) {
		if f.root != nil {
			a.bound[call] = true
			a.invokeObject(call, f)
		}
	})
	ofObjects := false
	if a.meta != nil {
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(a.meta), true, nil, c.Method.Name())
		ofObjects = m != nil
	}
	if p := c.Method.Pkg(); !ofObjects && (p == nil || !a.followed[p]) {
		a.leave(call, name, effectEscape)
	} else if !ofObjects {
		a.dynamic = append(a.dynamic, call)
	}
	a.results(call, func(_ int, to *node, t types.Type) { a.seed(to, t, false) })
}

// invokeObject follows a method of an API object, or of a part of one, that an interface holds.
func (a *flow) invokeObject(call ssa.CallInstruction, f fact) {
	c := call.Common()
	var t types.Type
	if f.root == anyObject {
		if t = a.meta; t == nil {
			return
		}
		if f.path == "" {
			f.path = "metadata"
		}
	} else if t = at(f.root.Type(), f.path); t == nil {
		return
	}
	t = container(t)
	m, index, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, c.Method.Pkg(), c.Method.Name())
	method, ok := m.(*types.Func)
	if !ok {
		return
	}
	for _, i := range index[:len(index)-1] {
		s, ok := t.Underlying().(*types.Struct)
		if !ok {
			return
		}
		if f.path, ok = below(f.path, s, i); !ok {
			return
		}
		t = container(s.Field(i).Type())
	}
	name := fullName(method)
	if effect, known := summary(name); known {
		if path, ok := strings.CutPrefix(string(effect), "path "); ok {
			a.results(call, func(_ int, to *node, t types.Type) { a.descend(f, path, to, t, call.Pos()) })
		}
		return
	}
	fn := a.prog.FuncValue(method)
	if fn == nil || len(fn.Blocks) == 0 {
		a.lose(f, call.Pos(), "has its method "+c.Method.Name()+" called", true)
		return
	}
	a.visit(fn)
	a.called[fn] = true
	a.add(a.node(fn.Params[0]), f)
	for i, arg := range c.Args {
		a.move(a.node(arg), a.node(fn.Params[i+1]), fn.Params[i+1].Type(), call.Pos())
	}
	a.results(call, func(i int, to *node, t types.Type) { a.move(a.node(resultKey{fn, i}), to, t, call.Pos()) })
}

// descend adds the field at a path below a fact's to a value of type t.
func (a *flow) descend(f fact, path string, to *node, t types.Type, pos token.Pos) {
	if f.path != "" {
		path = f.path + "." + path
	}
	if f = (fact{root: f.root, path: path}); leaf(t) {
		a.read(f, pos, whole)
	} else {
		a.add(to, f)
	}
}
