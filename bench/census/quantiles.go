// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// quantiles finds functions outside internal/stats that compute medians, quantiles or deviations
// from them, by name and by shape, and types that are histograms.
func quantiles(t *tree) (out []count) {
	for _, s := range t.packages {
		if below(s.path, "internal/stats") {
			continue
		}
		s.functions(func(fn *ast.FuncDecl) {
			var why []string
			if quantileName.MatchString(words(fn.Name.Name)) && s.returnsNumbers(fn) {
				why = append(why, "name")
			}
			if s.sortsAndHalves(fn) {
				why = append(why, "shape")
			}
			if len(why) > 0 {
				name := s.path + "." + fn.Name.Name
				if o := owner(fn); o != fn.Name.Name {
					name = s.path + "." + o + "." + fn.Name.Name
				}
				out = append(out, count{t.place(fn), "function, by " + strings.Join(why, " and "), name})
			}
		})
		for _, file := range s.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if ts, ok := n.(*ast.TypeSpec); ok && histogramName.MatchString(words(ts.Name.Name)) && s.countsIn(ts) {
					out = append(out, count{t.place(ts), "histogram", s.path + "." + ts.Name.Name})
				}
				return true
			})
		}
	}
	return out
}

var (
	quantileName  = regexp.MustCompile(`(?:^| )(?:medians?|quantiles?|percentiles?|mad|middle|p50|p9\d)(?: |$)`)
	histogramName = regexp.MustCompile(`(?:^| )(?:histograms?|sketch|buckets?)(?: |$)`)
	capital       = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// words splits a name: "medianOf" is "median of".
func words(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "$1 $2")) }

func (s *source) returnsNumbers(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	for _, r := range fn.Type.Results.List {
		if numeric(s.info.TypeOf(r.Type)) {
			return true
		}
	}
	return false
}

// numeric reports whether a type is a number, a slice of them, or a type parameter of such.
func numeric(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return strings.ContainsAny(p.Constraint().Underlying().String(), "0123456789") // int64 | float64
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsNumeric != 0
	case *types.Slice:
		b, ok := u.Elem().Underlying().(*types.Basic)
		return ok && b.Info()&types.IsNumeric != 0
	case *types.Struct: // as of a cost, with several numbers
		return false
	}
	return false
}

// sortsAndHalves reports whether a function sorts, or selects by order, and takes what is in the
// middle or at a share of the length: x[len(x)/2], x[n/2], x[int(q*float64(len(x)))].
func (s *source) sortsAndHalves(fn *ast.FuncDecl) bool {
	sorts, halves := false, false
	middles := map[types.Object]bool{} // variables that are half of something
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && i < len(n.Rhs) && isMiddle(n.Rhs[i]) {
					middles[s.info.ObjectOf(id)] = true
				}
			}
		case *ast.CallExpr:
			name := strings.ToLower(types.ExprString(n.Fun))
			sorts = sorts || strings.HasPrefix(name, "sort.") || strings.HasPrefix(name, "slices.sort") || strings.Contains(name, "select") && strings.Contains(name, "quick")
		case *ast.IndexExpr:
			id, isIdent := n.Index.(*ast.Ident)
			_, isMap := underlying(s.info.TypeOf(n.X)).(*types.Map)
			halves = halves || !isMap && elementsAreNumbers(s.info.TypeOf(n.X)) && (isMiddle(n.Index) || isIdent && middles[s.info.ObjectOf(id)])
		}
		return true
	})
	return sorts && halves
}

func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

func elementsAreNumbers(t types.Type) bool {
	sl, ok := underlying(t).(*types.Slice)
	if !ok {
		return false
	}
	return numeric(sl.Elem()) || structOf(sl.Elem()) != nil // such as weighted values
}

// isMiddle reports whether an expression has a length or count divided by two, or a share of it.
func isMiddle(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		if lit, isLit := b.Y.(*ast.BasicLit); b.Op == token.QUO && isLit && lit.Value == "2" {
			yes = true
		}
		if b.Op == token.MUL && strings.Contains(types.ExprString(b), "float64(len(") {
			yes = true
		}
		return true
	})
	return yes
}

// countsIn reports whether a type holds counts: a map, slice or array of integers.
func (s *source) countsIn(ts *ast.TypeSpec) bool {
	obj := s.info.Defs[ts.Name]
	if obj == nil {
		return false
	}
	if countsOf(obj.Type()) {
		return true
	}
	st, ok := obj.Type().Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range st.Fields() {
		if countsOf(f.Type()) {
			return true
		}
	}
	return false
}

func countsOf(t types.Type) bool {
	var elem types.Type
	switch u := t.Underlying().(type) {
	case *types.Map:
		elem = u.Elem()
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	default:
		return false
	}
	if p, ok := elem.Underlying().(*types.Pointer); ok { // pages of counts
		elem = p.Elem()
	}
	if a, ok := elem.Underlying().(*types.Array); ok {
		elem = a.Elem()
	}
	b, ok := elem.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}
