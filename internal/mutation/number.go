// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number adds the mutants of a literal: 1.2 and 0.8 times its value.
func (f *finder) number(n *ast.BasicLit, stack []ast.Node) {
	if n.Kind != token.INT && n.Kind != token.FLOAT || !f.p.isQuantity(n, stack) {
		return
	}
	kind := Number
	if n.Value != "0" && n.Value != "1" && f.p.isThreshold(stack) {
		kind = Threshold
	}
	for _, factor := range []float64{1.2, 0.8} {
		if text := scale(n, factor); text != "" {
			f.add(kind, n.Pos(), n.End(), text)
		}
	}
}

// scale returns the literal times factor, and an integer by at least one away from its
// value. It returns nothing for what is not decimal, since those are modes and masks, and
// for what does not change.
func scale(n *ast.BasicLit, factor float64) string {
	if n.Kind == token.INT {
		return scaleInt(n.Value, factor)
	}
	return scaleFloat(n.Value, factor)
}

func scaleInt(text string, factor float64) string {
	v, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || len(text) > 1 && text[0] == '0' {
		return ""
	}
	scaled := int64(math.Round(float64(v) * factor))
	if factor > 1 {
		scaled = max(scaled, v+1)
	} else {
		scaled = min(scaled, v-1)
	}
	return strconv.FormatInt(scaled, 10)
}

func scaleFloat(text string, factor float64) string {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil || v == 0 {
		return ""
	}
	scaled := strconv.FormatFloat(v*factor, 'g', 12, 64)
	if !strings.ContainsAny(scaled, ".e") {
		scaled += ".0" // a division of integers would round
	}
	return scaled
}

// isQuantity reports whether the literal is none of: shift count, case label, index, key,
// size of a make, part of an enumeration.
func (p *Package) isQuantity(n *ast.BasicLit, stack []ast.Node) bool {
	child := ast.Node(n)
	for i, parent := range slices.Backward(stack) {
		if p.isNoQuantity(parent, child, stack[:i]) {
			return false
		}
		child = parent
	}
	return true
}

// isNoQuantity reports whether child has a place in parent that makes it no quantity. The
// nodes above parent are above.
func (p *Package) isNoQuantity(parent, child ast.Node, above []ast.Node) bool {
	switch parent := parent.(type) {
	case *ast.BinaryExpr:
		return (parent.Op == token.SHL || parent.Op == token.SHR) && child == parent.Y
	case *ast.AssignStmt:
		return parent.Tok == token.SHL_ASSIGN || parent.Tok == token.SHR_ASSIGN
	case *ast.CaseClause:
		return isLabel(parent, child, above)
	case *ast.IndexExpr:
		return child == parent.Index
	case *ast.SliceExpr:
		return child != parent.X
	case *ast.KeyValueExpr:
		return child == parent.Key
	case *ast.CallExpr:
		return p.called(parent) == types.Universe.Lookup("make")
	case *ast.GenDecl:
		return parent.Tok == token.CONST && p.usesIota(parent)
	}
	return false
}

// isLabel reports whether child is a label of a switch with a tag. Those of a switch
// without one are conditions.
func isLabel(clause *ast.CaseClause, child ast.Node, above []ast.Node) bool {
	e, ok := child.(ast.Expr)
	if !ok || !slices.Contains(clause.List, e) {
		return false
	}
	statement, ok := above[len(above)-2].(*ast.SwitchStmt)
	return !ok || statement.Tag != nil
}

func (p *Package) usesIota(decl *ast.GenDecl) bool {
	found := false
	ast.Inspect(decl, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && p.info.Uses[id] == types.Universe.Lookup("iota") {
			found = true
		}
		return !found
	})
	return found
}

// isThreshold reports whether the literal below stack is what Threshold says.
func (p *Package) isThreshold(stack []ast.Node) bool {
	for i, parent := range slices.Backward(stack) {
		switch parent := parent.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.BinaryExpr:
			if _, comparison := swaps[parent.Op][Negation]; comparison {
				return true
			}
		case *ast.CallExpr:
			called := p.called(parent)
			if called == types.Universe.Lookup("min") || called == types.Universe.Lookup("max") {
				return true
			}
		case *ast.KeyValueExpr:
			return true
		case *ast.AssignStmt:
			return slices.ContainsFunc(parent.Lhs, p.isField)
		case *ast.GenDecl:
			_, global := stack[i-1].(*ast.File)
			return parent.Tok == token.CONST || global
		}
	}
	return false
}
