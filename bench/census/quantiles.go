// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// quantiles finds functions outside internal/stats that compute medians, quantiles or deviations
// from them, by name and by shape, and types that are histograms.
func quantiles(t *tree) (out []count) {
	for _, s := range t.packages {
		if below(s.path, statsPath) {
			continue
		}
		asks := t.askingStats(s)
		s.functions(func(fn *ast.FuncDecl) {
			var why []string
			if quantileName.MatchString(words(fn.Name.Name)) && s.returnsNumbers(fn) && s.defines(fn, asks) {
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
				if ts, ok := n.(*ast.TypeSpec); ok && histogramName.MatchString(words(ts.Name.Name)) && s.countsIn(ts) && t.countsUp(s, ts) {
					out = append(out, count{t.place(ts), "histogram", s.path + "." + ts.Name.Name})
				}
				return true
			})
		}
	}
	return out
}

const statsPath = "internal/stats"

// isStats reports whether a package is internal/stats.
func (t *tree) isStats(p *types.Package) bool { return p != nil && t.below(p.Path()) == statsPath }

// askingStats finds the functions of a package that call a median or quantile of internal/stats,
// by themselves or by way of others of the package.
func (t *tree) askingStats(s *source) map[types.Object]bool {
	asks := map[types.Object]bool{}
	calls := map[types.Object][]types.Object{}
	s.functions(func(fn *ast.FuncDecl) {
		of := s.info.Defs[fn.Name]
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			switch f, isFunc := s.info.Uses[id].(*types.Func); {
			case !isFunc:
			case t.isStats(f.Pkg()):
				asks[of] = asks[of] || quantileName.MatchString(words(f.Name()))
			case f.Pkg() == s.types:
				calls[of] = append(calls[of], f.Origin())
			}
			return true
		})
	})
	for more := true; more; {
		more = false
		for of, called := range calls {
			if !asks[of] && slices.ContainsFunc(called, func(f types.Object) bool { return asks[f] }) {
				asks[of], more = true, true
			}
		}
	}
	return asks
}

// defines reports whether a function with the name of a median or quantile finds its number by
// itself: it puts values in order, or it takes values that it has and does not ask internal/stats.
// What only names a number of internal/stats does not, and what has no values to choose from, such
// as the middle of an interval, does not either.
func (s *source) defines(fn *ast.FuncDecl, asks map[types.Object]bool) bool {
	return s.orders(fn) || s.takes(fn) && !asks[s.info.Defs[fn.Name]]
}

// orders reports whether a function sorts, selects by order, or swaps values.
func (s *source) orders(fn *ast.FuncDecl) (yes bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			yes = yes || sorts(n)
		case *ast.AssignStmt:
			yes = yes || len(n.Lhs) == 2 && len(n.Rhs) == 2 && isElement(n.Lhs[0]) && isElement(n.Lhs[1]) && isElement(n.Rhs[0]) && isElement(n.Rhs[1])
		}
		return true
	})
	return yes
}

func isElement(e ast.Expr) bool {
	_, ok := e.(*ast.IndexExpr)
	return ok
}

// takes reports whether a function indexes or goes through numbers, or structs, which may hold them.
func (s *source) takes(fn *ast.FuncDecl) (yes bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			yes = yes || holdsNumbers(s.info.TypeOf(n.X))
		case *ast.RangeStmt:
			yes = yes || holdsNumbers(s.info.TypeOf(n.X))
		}
		return true
	})
	return yes
}

// holdsNumbers reports whether a type is a slice, an array or a map of numbers or of structs.
func holdsNumbers(t types.Type) bool {
	if p, ok := underlying(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	var elem types.Type
	switch u := underlying(t).(type) {
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	case *types.Map:
		elem = u.Elem()
	default:
		return false
	}
	return numeric(elem) || structOf(elem) != nil
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
	sorted, halves := false, false
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
			sorted = sorted || sorts(n)
		case *ast.IndexExpr:
			id, isIdent := n.Index.(*ast.Ident)
			_, isMap := underlying(s.info.TypeOf(n.X)).(*types.Map)
			halves = halves || !isMap && elementsAreNumbers(s.info.TypeOf(n.X)) && (isMiddle(n.Index) || isIdent && middles[s.info.ObjectOf(id)])
		}
		return true
	})
	return sorted && halves
}

// sorts reports whether a call sorts or selects by order.
func sorts(call *ast.CallExpr) bool {
	name := strings.ToLower(types.ExprString(call.Fun))
	return strings.HasPrefix(name, "sort.") || strings.HasPrefix(name, "slices.sort") || strings.Contains(name, "select") && strings.Contains(name, "quick")
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

// countsUp reports whether the package adds to the counts of a type: in a method of it to any but
// those of internal/stats, or elsewhere to those of a value of the type. What never does, such as
// a document in which a histogram is sent, is no histogram.
func (t *tree) countsUp(s *source, ts *ast.TypeSpec) (yes bool) {
	s.functions(func(fn *ast.FuncDecl) {
		method := owner(fn) == ts.Name.Name
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if element := addedTo(n); element != nil {
				of := s.countsOwner(element)
				yes = yes || of != nil && of.Obj() == s.info.Defs[ts.Name] || method && (of == nil || !t.isStats(of.Obj().Pkg()))
			}
			return true
		})
	})
	return yes
}

// addedTo returns the element that a statement adds to; nil where it adds to none.
func addedTo(n ast.Node) *ast.IndexExpr {
	var to ast.Expr
	switch n := n.(type) {
	case *ast.IncDecStmt:
		to = n.X
	case *ast.AssignStmt:
		if n.Tok == token.ADD_ASSIGN {
			to = n.Lhs[0]
		}
	}
	element, _ := to.(*ast.IndexExpr)
	return element
}

// countsOwner returns the type whose field, or which itself, has the element; nil where it has no name.
func (s *source) countsOwner(element *ast.IndexExpr) *types.Named {
	of := s.info.TypeOf(element.X)
	if sel, ok := element.X.(*ast.SelectorExpr); ok {
		of = s.info.TypeOf(sel.X)
	}
	if of == nil {
		return nil
	}
	if p, ok := types.Unalias(of).(*types.Pointer); ok {
		of = p.Elem()
	}
	n, _ := types.Unalias(of).(*types.Named)
	return n
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
