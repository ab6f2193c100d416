// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Find returns all mutants of the package, in the order of its sources. Some of them may
// not compile. It leaves out generated files, methods that make text (String, Error and
// GoString), and what is passed to functions that make text or write logs.
func (p *Package) Find() []Mutant {
	var found []Mutant
	for _, file := range p.files {
		if ast.IsGenerated(file.syntax) {
			continue
		}
		f := &finder{p: p, file: file}
		ast.PreorderStack(file.syntax, nil, f.visit)
		found = append(found, f.found...)
	}
	return found
}

// finder collects the mutants of one file.
type finder struct {
	p     *Package
	file  *source
	found []Mutant
}

func (f *finder) add(kind Kind, pos, end token.Pos, text string) {
	f.found = append(f.found, f.p.mutate(f.file, kind, pos, end, text))
}

// visit adds the mutants of n itself and reports whether to look at its children.
func (f *finder) visit(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return !makesText(n)
	case *ast.ArrayType:
		return false
	case *ast.CallExpr:
		return !f.p.callsText(n)
	case *ast.BasicLit:
		f.number(n, stack)
	case *ast.Ident:
		f.boolean(n)
	case *ast.BinaryExpr:
		f.operator(n.Op, n.X, n.OpPos)
	case *ast.AssignStmt:
		f.operator(n.Tok, n.Lhs[0], n.TokPos)
		f.dropAssignment(n, n.Tok, n.Lhs, stack)
	case *ast.IncDecStmt:
		f.dropAssignment(n, n.Tok, []ast.Expr{n.X}, stack)
	case *ast.ExprStmt:
		f.dropCall(n, stack)
	case *ast.ReturnStmt:
		f.nilError(n, stack)
	}
	return true
}

func makesText(n *ast.FuncDecl) bool {
	switch n.Name.Name {
	case "String", "Error", "GoString":
		return n.Recv != nil
	}
	return false
}

// textPackages make text, write it, or write logs.
var textPackages = map[string]bool{
	"errors": true, "fmt": true, "log": true, "log/slog": true, "go.uber.org/zap": true,
}

func (p *Package) callsText(call *ast.CallExpr) bool {
	called := p.called(call)
	return called != nil && called.Pkg() != nil && textPackages[called.Pkg().Path()]
}

// called returns the function, method, type or builtin that is called, or nil.
func (p *Package) called(call *ast.CallExpr) types.Object {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return p.info.Uses[fun]
	case *ast.SelectorExpr:
		return p.info.Uses[fun.Sel]
	}
	return nil
}

// swaps are the operators that take the place of another one.
var swaps = map[token.Token]map[Kind]token.Token{
	token.LSS:        {Boundary: token.LEQ, Negation: token.GEQ},
	token.LEQ:        {Boundary: token.LSS, Negation: token.GTR},
	token.GTR:        {Boundary: token.GEQ, Negation: token.LEQ},
	token.GEQ:        {Boundary: token.GTR, Negation: token.LSS},
	token.EQL:        {Negation: token.NEQ},
	token.NEQ:        {Negation: token.EQL},
	token.ADD:        {Arithmetic: token.SUB},
	token.SUB:        {Arithmetic: token.ADD},
	token.MUL:        {Arithmetic: token.QUO},
	token.QUO:        {Arithmetic: token.MUL},
	token.ADD_ASSIGN: {Arithmetic: token.SUB_ASSIGN},
	token.SUB_ASSIGN: {Arithmetic: token.ADD_ASSIGN},
	token.MUL_ASSIGN: {Arithmetic: token.QUO_ASSIGN},
	token.QUO_ASSIGN: {Arithmetic: token.MUL_ASSIGN},
	token.LAND:       {Logic: token.LOR},
	token.LOR:        {Logic: token.LAND},
}

func (f *finder) operator(op token.Token, operand ast.Expr, pos token.Pos) {
	for _, kind := range Kinds {
		swapped, ok := swaps[op][kind]
		if !ok || kind == Arithmetic && isString(f.p.info.TypeOf(operand)) {
			continue
		}
		f.add(kind, pos, pos+token.Pos(len(op.String())), swapped.String())
	}
}

func isString(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func (f *finder) boolean(n *ast.Ident) {
	switch f.p.info.Uses[n] {
	case types.Universe.Lookup("true"):
		f.add(Boolean, n.Pos(), n.End(), "false")
	case types.Universe.Lookup("false"):
		f.add(Boolean, n.Pos(), n.End(), "true")
	}
}

func (f *finder) dropCall(n *ast.ExprStmt, stack []ast.Node) {
	call, ok := n.X.(*ast.CallExpr)
	if !ok || !inBody(stack) || f.p.callsText(call) || f.p.called(call) == types.Universe.Lookup("panic") {
		return
	}
	f.add(Drop, n.Pos(), n.End(), "")
}

func (f *finder) dropAssignment(n ast.Stmt, op token.Token, to []ast.Expr, stack []ast.Node) {
	if op == token.DEFINE || !inBody(stack) {
		return
	}
	for _, e := range to {
		if !f.p.isField(e) {
			return
		}
	}
	f.add(Drop, n.Pos(), n.End(), "")
}

// inBody reports whether the statement below stack is one of a list, and not the clause of
// another statement.
func inBody(stack []ast.Node) bool {
	switch stack[len(stack)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	}
	return false
}

// isField reports whether e is a field, or an element of one.
func (p *Package) isField(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return p.isField(e.X)
	case *ast.SelectorExpr:
		selection := p.info.Selections[e]
		return selection != nil && selection.Kind() == types.FieldVal
	}
	return false
}

func (f *finder) nilError(n *ast.ReturnStmt, stack []ast.Node) {
	results := resultTypes(stack)
	if len(results) == 0 || len(n.Results) != len(results) {
		return
	}
	if f.p.info.TypeOf(results[len(results)-1]) != types.Universe.Lookup("error").Type() {
		return
	}
	last := n.Results[len(n.Results)-1]
	if f.p.info.Types[last].IsNil() {
		return
	}
	f.add(NilError, last.Pos(), last.End(), "nil")
}

// resultTypes returns the type of each result of the innermost function on stack.
func resultTypes(stack []ast.Node) []ast.Expr {
	var function *ast.FuncType
	for _, n := range stack {
		switch n := n.(type) {
		case *ast.FuncDecl:
			function = n.Type
		case *ast.FuncLit:
			function = n.Type
		}
	}
	if function == nil || function.Results == nil {
		return nil
	}
	var results []ast.Expr
	for _, field := range function.Results.List {
		for range max(1, len(field.Names)) {
			results = append(results, field.Type)
		}
	}
	return results
}
