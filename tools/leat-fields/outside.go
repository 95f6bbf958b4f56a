package main

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// leave applies the effect of a call into code that is not followed.
func (a *flow) leave(call ssa.CallInstruction, name string, effect effect) {
	c, pos := call.Common(), call.Pos()
	args := c.Args
	if c.IsInvoke() {
		args = append([]ssa.Value{c.Value}, args...)
	}
	read, isRead := strings.CutPrefix(string(effect), "read:")
	path, isPath := strings.CutPrefix(string(effect), "path ")
	switch {
	case effect == effectNone:
		for _, arg := range args {
			a.each(a.node(arg), func(f fact) { a.called[f.fn] = true })
		}
		return
	case isRead:
		for _, arg := range args {
			a.each(a.node(arg), func(f fact) {
				if f.root != nil && f.path == "" {
					a.read(fact{root: f.root, path: read}, pos, whole)
				}
			})
		}
		effect = effectIdentity
	case isPath:
		a.each(a.node(args[0]), func(f fact) {
			if f.root != nil {
				prefix := ""
				if f.path == "" {
					prefix = "metadata."
				}
				a.results(call, func(_ int, to *node, t types.Type) { a.descend(f, prefix+path, to, t, pos) })
			}
		})
		return
	case effect == effectSame:
		a.results(call, func(i int, to *node, t types.Type) {
			if i == 0 {
				a.move(a.node(args[0]), to, t, pos)
			}
		})
		return
	case effect == effectInto:
		from := args[0]
		a.store(args[1], from, pos)
		return
	}
	short := name[strings.LastIndexByte(name, '/')+1:]
	delivery := isDelivery(name) || c.IsInvoke() && c.Method.Pkg() != nil && isDelivery(c.Method.Pkg().Path())
	for _, arg := range args {
		if leaf(arg.Type()) {
			a.readAll(a.node(arg), pos)
			continue
		}
		a.sinkObjects(a.node(arg), arg, pos, "is passed to "+short, effect, delivery)
	}
	a.results(call, func(_ int, to *node, t types.Type) { a.seed(to, t, delivery && effect == effectEscape) })
}

// sinkObjects handles a value that code which is not followed gets. This code may call functions that it gets, and fill
// in objects that the program made.
func (a *flow) sinkObjects(n *node, v ssa.Value, pos token.Pos, how string, effect effect, delivery bool) {
	filled := map[*types.TypeName]bool{}
	made := origin(v)
	a.each(n, func(f fact) {
		switch {
		case f.fn != nil:
			a.enter(f.fn, delivery, true)
			for _, p := range f.fn.Params {
				if o := object(p.Type()); o != nil && effect.writes() {
					a.write(o, pos, how)
				}
			}
		case f.cell != nil && f.cell.made:
			if o := object(deref(f.cell.typ)); o != nil && effect.fills() {
				_, direct := made.(*ssa.Alloc)
				filled[o] = direct
				a.add(f.cell, fact{root: o})
			}
			if o := object(deref(f.cell.typ)); o != nil && !effect.writes() && a.own(pos) {
				a.uses(o)
			}
		case f.root != nil:
			switch {
			case effect == effectCall:
			case effect.writes() && f.path == "":
				a.write(f.root, pos, how)
			case effect != effectEscape && effect != effectWhole && (f.path == "" || f.path == "metadata"):
			case filled[f.root] && f.path == "":
			default:
				a.lose(f, pos, how, effect == effectEscape)
			}
		}
	})
	if effect == effectEscape && !delivery {
		for _, part := range append(spread(v), made) {
			a.sinkType(part.Type(), pos, how, true, 0)
		}
	}
}

// sink counts everything that arrives at a node as read.
func (a *flow) sink(n *node, v ssa.Value, pos token.Pos, how string, effect effect) {
	a.sinkObjects(n, v, pos, how, effect, false)
}

// sinkType handles what values of a type hold when code that is not followed gets one, as encoding/json does: the
// fields of structs, and the elements of maps and channels.
func (a *flow) sinkType(t types.Type, pos token.Pos, how string, escapes bool, depth int) {
	t = container(t)
	if a.part(t) || leaf(t) || depth > 3 {
		return
	}
	lose := func(f fact) {
		if f.root != nil {
			a.lose(f, pos, "in "+types.TypeString(t, (*types.Package).Name)+" "+how, escapes)
		}
	}
	held := func(n *node, t types.Type) {
		a.each(n, lose)
		if o := object(core(t)); o != nil {
			lose(fact{root: o})
		}
		a.sinkType(t, pos, how, escapes, depth+1)
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		held(a.elements(t), u.Elem())
	case *types.Chan:
		held(a.elements(t), u.Elem())
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); !leaf(f.Type()) {
				held(a.field(t, i), f.Type())
			}
		}
	}
}

func (a *flow) builtin(call ssa.CallInstruction, name string, pos token.Pos) {
	args := call.Common().Args
	switch name {
	case "len", "cap":
		a.each(a.node(args[0]), func(f fact) { a.read(f, pos, presence) })
	case "append":
		if v := call.Value(); v != nil && !leaf(v.Type()) {
			for _, arg := range args {
				a.copy(a.node(arg), a.node(v))
			}
			a.each(a.node(args[0]), func(f fact) {
				if f.cell != nil && len(args) > 1 && fits(f.cell.typ, args[1].Type()) {
					a.copy(a.node(args[1]), f.cell)
				}
			})
		}
	case "copy":
		if !leaf(args[0].Type()) {
			a.copy(a.node(args[1]), a.elements(args[1].Type()))
			a.sinkIntoParts(args[0], args[1], pos)
			a.each(a.node(args[0]), func(f fact) {
				if f.cell != nil && fits(f.cell.typ, args[1].Type()) {
					a.copy(a.node(args[1]), f.cell)
				}
			})
		}
	case "ssa:wrapnilchk":
		a.copy(a.node(args[0]), a.node(call.Value()))
	case "delete", "clear", "recover", "close", "min", "max":
	default:
		for _, arg := range args {
			a.sink(a.node(arg), arg, pos, "is passed to "+name, effectEscape)
		}
	}
}

// formatted returns those arguments of a call of package fmt of which it prints more than the type (%T). ok is false if
// the format is not a constant, or gives an argument more than one verb.
func formatted(name string, args []ssa.Value) (printed []ssa.Value, ok bool) {
	if !slices.Contains([]string{"fmt.Errorf", "fmt.Sprintf", "fmt.Printf", "fmt.Fprintf", "fmt.Appendf"}, name) {
		return nil, false
	}
	format, ok := args[len(args)-2].(*ssa.Const)
	if !ok || format.Value == nil || format.Value.Kind() != constant.String {
		return nil, false
	}
	text := strings.ReplaceAll(constant.StringVal(format.Value), "%%", "")
	values := spread(args[len(args)-1])
	for i, part := range strings.Split(text, "%")[1:] {
		verb := strings.TrimLeft(part, "+-# 0123456789.")
		if verb == "" || strings.ContainsAny(verb[:1], "*[") || i >= len(values) {
			return nil, false
		}
		if verb[0] != 'T' {
			printed = append(printed, values[i])
		}
	}
	return printed, strings.Count(text, "%") == len(values)
}

// origin returns the value that was converted to an interface.
func origin(v ssa.Value) ssa.Value {
	switch i := v.(type) {
	case *ssa.MakeInterface:
		return origin(i.X)
	case *ssa.ChangeInterface:
		return origin(i.X)
	case *ssa.ChangeType:
		return origin(i.X)
	}
	return v
}

// spread returns the arguments that a call passes as a list.
func spread(v ssa.Value) (args []ssa.Value) {
	s, ok := v.(*ssa.Slice)
	if !ok {
		return nil
	}
	list, ok := s.X.(*ssa.Alloc)
	if !ok {
		return nil
	}
	for _, r := range *list.Referrers() {
		if at, ok := r.(*ssa.IndexAddr); ok {
			for _, r := range *at.Referrers() {
				if store, ok := r.(*ssa.Store); ok {
					args = append(args, origin(store.Val))
				}
			}
		}
	}
	return args
}
