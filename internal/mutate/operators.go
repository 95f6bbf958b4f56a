package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// condition makes a condition always true, always false. An operand of && or || that is dropped does one of the two
// already.
func (f *finder) condition(e ast.Expr, always, never bool) {
	if b, ok := f.basic(e); !ok || b.Info()&types.IsBoolean == 0 || f.isConstant(e) {
		return
	}
	if logic, ok := ast.Unparen(e).(*ast.BinaryExpr); ok {
		always = always && logic.Op != token.LAND
		never = never && logic.Op != token.LOR
	}
	if always {
		f.add(e, f.text(e)+" → true", f.around(e, "(mutantIs(%d) || (", "))"))
	}
	if never {
		f.add(e, f.text(e)+" → false", f.around(e, "(!mutantIs(%d) && (", "))"))
	}
}

// cases treats the cases of a switch without a tag as conditions.
func (f *finder) cases(s *ast.SwitchStmt) {
	for _, clause := range s.Body.List {
		if s.Tag == nil {
			for _, e := range clause.(*ast.CaseClause).List {
				f.condition(e, true, true)
			}
		}
	}
}

// results makes a function return the opposite, and no error.
func (f *finder) results(r *ast.ReturnStmt) {
	for _, e := range r.Results {
		if _, name := e.(*ast.Ident); name && f.isConstant(e) {
			continue // true or false
		}
		f.condition(e, true, true)
		if t := f.info.TypeOf(e); types.Identical(t, types.Universe.Lookup("error").Type()) {
			f.add(e, "return "+f.text(e)+" → nil", f.around(e, "mutateNil(%d, ", ")"))
		}
	}
}

// swaps are the operators that take the place of others, and the functions that do so.
var swaps = map[token.Token]struct {
	other    token.Token
	function string
}{
	token.LSS: {token.LEQ, "mutateLess"}, token.LEQ: {token.LSS, "mutateLessOrEqual"},
	token.GTR: {token.GEQ, "mutateGreater"}, token.GEQ: {token.GTR, "mutateGreaterOrEqual"},
	token.ADD: {token.SUB, "mutatePlus"}, token.SUB: {token.ADD, "mutateMinus"},
}

func (f *finder) binary(b *ast.BinaryExpr) {
	if f.isConstant(b) {
		return
	}
	if b.Op == token.LAND || b.Op == token.LOR {
		neutral := map[token.Token]string{token.LAND: "(mutantIs(%d) || (", token.LOR: "(!mutantIs(%d) && ("}[b.Op]
		for _, dropped := range []ast.Expr{b.X, b.Y} {
			f.add(dropped, f.text(b)+" without "+f.text(dropped), f.around(dropped, neutral, "))"))
		}
		return
	}
	if b.Op == token.EQL || b.Op == token.NEQ {
		if !f.isCondition(b) {
			f.add(b, f.text(b)+" negated", f.around(b, "((", ") != mutantIs(%d))"))
		}
		return
	}
	swap, known := swaps[b.Op]
	operand, basic := f.info.TypeOf(b.X).Underlying().(*types.Basic)
	if f.isConstant(b.X) {
		operand, basic = f.info.TypeOf(b.Y).Underlying().(*types.Basic)
	}
	if !known || !basic || operand.Info()&(types.IsInteger|types.IsFloat) == 0 {
		return
	}
	at := f.offset(b.OpPos)
	f.add(b, f.text(b)+" with "+swap.other.String(),
		f.around(b, swap.function+"(%d, ", ")"), edit{from: at, to: at + len(b.Op.String()), before: ",", replace: true})
}

// isCondition tells whether an expression is mutated as a condition, or as an operand of one.
func (f *finder) isCondition(e ast.Expr) bool {
	child := ast.Node(e)
	for i := len(f.stack) - 1; i >= 0; i-- {
		switch parent := f.stack[i].(type) {
		case *ast.ParenExpr:
			child = parent
			continue
		case *ast.BinaryExpr:
			return parent.Op == token.LAND || parent.Op == token.LOR
		case *ast.IfStmt:
			return parent.Cond == child
		case *ast.ForStmt:
			return parent.Cond == child
		case *ast.CaseClause, *ast.ReturnStmt:
			return true
		}
		return false
	}
	return false
}

// call swaps min and max. It reports whether the call stays as it is, with everything in it.
func (f *finder) call(c *ast.CallExpr) (skip bool) {
	name := types.ExprString(c.Fun)
	switch name {
	case "make", "panic", "len", "cap":
		return name == "make" || name == "panic"
	case "min", "max":
		if b, ok := f.info.TypeOf(c).Underlying().(*types.Basic); ok && !f.isConstant(c) && b.Info()&types.IsOrdered != 0 {
			other := map[string]string{"min": "max", "max": "min"}[name]
			f.add(c, f.text(c)+" with "+other, edit{
				from: f.offset(c.Pos()), to: f.offset(c.Lparen) + 1,
				before: "mutateM" + name[1:] + "(%d, ", replace: true,
			})
		}
	}
	return f.logs(c)
}

// logs tells whether a call is a log message, or makes a part of one.
func (f *finder) logs(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && (strings.HasSuffix(types.ExprString(s.X), "zap") || strings.HasSuffix(types.TypeString(f.info.TypeOf(s.X), nil), "zap.Logger"))
}

// literal makes an integer one higher, where no operator beside it is mutated in a way that does the same.
func (f *finder) literal(l *ast.BasicLit) {
	b, ok := f.basic(l)
	if !ok || l.Kind != token.INT || b.Info()&types.IsUntyped != 0 || b.Info()&types.IsNumeric == 0 || len(f.stack) == 0 {
		return
	}
	switch parent := f.stack[len(f.stack)-1].(type) {
	case *ast.BinaryExpr:
		switch parent.Op {
		case token.MUL, token.QUO, token.REM:
		default:
			return
		}
	case *ast.KeyValueExpr:
		if parent.Key == l {
			return
		}
	}
	f.add(l, l.Value+" + 1 in "+f.lineOf(l), f.around(l, "(", " + mutateBy["+b.Name()+"](%d))"))
}

// boolean flips true and false.
func (f *finder) boolean(i *ast.Ident) {
	if b, ok := f.basic(i); ok && b.Info()&types.IsBoolean != 0 && f.isConstant(i) && (i.Name == "true" || i.Name == "false") {
		f.add(i, "flip "+i.Name+" in "+f.lineOf(i), f.around(i, "(", " != mutantIs(%d))"))
	}
}

// statement removes a statement from a block.
func (f *finder) statement(s ast.Stmt) {
	if len(f.stack) == 0 || !f.isRemovable(s) {
		return
	}
	switch f.stack[len(f.stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		if clause, ok := f.stack[len(f.stack)-1].(*ast.CommClause); !ok || clause.Comm != s {
			f.add(s, "remove "+f.text(s), f.around(s, "if !mutantIs(%d) { ", " }"))
		}
	}
}

func (f *finder) isRemovable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || f.logs(call) || types.ExprString(call.Fun) == "panic" {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		return !ok || !strings.HasSuffix(method.Sel.Name, "ock") // Lock, RUnlock
	case *ast.AssignStmt:
		blank := true
		for _, left := range s.Lhs {
			blank = blank && types.ExprString(left) == "_"
		}
		return s.Tok != token.DEFINE && !blank
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	}
	return false
}
