// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// grown are the maps of engines and components that something is inserted into.
type grown struct {
	unlimited []count // nothing limits them that is seen
	checked   []count // the length is compared with something where the map is
	bounded   []count // fields that are a bounded.Map and whose length is compared with something
	excused   int     // a reason is given
	unused    []string
}

// mapFields finds struct fields that are maps and grow. A field whose keys have at most 256
// values does not count.
func mapFields(t *tree, reasons map[string]string) (out grown) {
	used := map[string]bool{}
	for _, s := range t.packages {
		if !ofEngines(s) {
			continue
		}
		u := s.useOfMaps()
		out.bounded = append(out.bounded, s.boundedByHand(t, u)...)
		for _, f := range slices.SortedFunc(maps.Keys(u.inserted), func(a, b *types.Var) int { return int(a.Pos() - b.Pos()) }) {
			name, ok := u.names[f]
			if !ok {
				continue // of another package, which has it
			}
			c := count{t.place(u.fields[f]), types.TypeString(f.Type(), func(p *types.Package) string { return p.Name() }), s.path + "." + name}
			switch {
			case reasons[c.group] != "":
				out.excused++
				used[c.group] = true
			case u.compared[f]:
				out.checked = append(out.checked, c)
			default:
				out.unlimited = append(out.unlimited, c)
			}
		}
	}
	out.unused = others(reasons, used)
	return out
}

// boundedByHand finds fields that are a bounded.Map and whose length is compared with something that is
// not 0: a limit by hand, where the map may have it.
func (s *source) boundedByHand(t *tree, u *mapUse) (out []count) {
	for _, f := range slices.SortedFunc(maps.Keys(u.lengths), func(a, b *types.Var) int { return int(u.lengths[a].Pos() - u.lengths[b].Pos()) }) {
		out = append(out, count{t.place(u.lengths[f]), "length of " + f.Name() + " is compared", s.path + "." + u.name(f)})
	}
	return out
}

// ofEngines reports whether a package is part of an engine or a component, and not internal/bounded.
func ofEngines(s *source) bool {
	return below(s.path, "internal", "receiver", "processor", "connector", "exporter", "extension") &&
		!below(s.path, apart...) && !below(s.path, "internal/bounded")
}

// mapUse is what a package does with map-typed fields.
type mapUse struct {
	names    map[*types.Var]string     // "Type.field", of fields that are declared here
	fields   map[*types.Var]*ast.Ident // those of names
	inserted map[*types.Var]bool
	compared map[*types.Var]bool     // the length is
	lengths  map[*types.Var]ast.Node // of bounded.Map, where the length is compared
	alias    map[types.Object]*types.Var
}

func (s *source) useOfMaps() *mapUse {
	u := &mapUse{
		names: map[*types.Var]string{}, fields: map[*types.Var]*ast.Ident{}, inserted: map[*types.Var]bool{},
		compared: map[*types.Var]bool{}, lengths: map[*types.Var]ast.Node{}, alias: map[types.Object]*types.Var{},
	}
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if ts, ok := n.(*ast.TypeSpec); ok {
				s.declared(u, ts.Name.Name, ts.Type)
			}
			return true
		})
		s.declaredByVariables(u, file)
	}
	for range 2 { // a variable may be a field's map, and of that variable another
		s.functions(func(fn *ast.FuncDecl) { s.aliases(u, fn) })
	}
	s.functions(func(fn *ast.FuncDecl) {
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			s.mapStatement(u, n)
			return true
		})
	})
	return u
}

// name is "Type.field"; a field that is declared in another package has the name of that package for a type.
func (u *mapUse) name(f *types.Var) string { return cmp.Or(u.names[f], f.Pkg().Name()+"."+f.Name()) }

// declared notes the fields of a struct type, also of structs within it.
func (s *source) declared(u *mapUse, name string, of ast.Expr) {
	ast.Inspect(of, func(n ast.Node) bool {
		st, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range st.Fields.List {
			for _, id := range f.Names {
				if v, ok := s.info.Defs[id].(*types.Var); ok {
					u.names[v], u.fields[v] = name+"."+id.Name, id
				}
			}
		}
		return true
	})
}

// declaredByVariables notes the fields of a package's variables whose struct has no name of its own.
func (s *source) declaredByVariables(u *mapUse, file *ast.File) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, spec := range decl.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			if v.Type != nil {
				s.declared(u, v.Names[0].Name, v.Type)
			}
			for i, value := range v.Values {
				if lit, ok := value.(*ast.CompositeLit); ok && lit.Type != nil {
					s.declared(u, v.Names[i].Name, lit.Type)
				}
			}
		}
	}
}

// grows reports whether a type is a map, or a slice or array of maps, with many keys.
func grows(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Map:
		b, ok := u.Key().Underlying().(*types.Basic)
		return !ok || !slices.Contains([]types.BasicKind{types.Bool, types.Uint8, types.Int8}, b.Kind())
	case *types.Slice:
		return grows(u.Elem())
	case *types.Array:
		return grows(u.Elem())
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "sync" && n.Obj().Name() == "Map"
}

// field returns the map-typed field that an expression is, itself or by a variable.
func (s *source) field(u *mapUse, e ast.Expr) *types.Var {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.field(u, e.X)
	case *ast.IndexExpr: // a slice of maps, or a map of them
		return s.field(u, e.X)
	case *ast.Ident:
		return u.alias[s.info.ObjectOf(e)]
	case *ast.SelectorExpr:
		if sel := s.info.Selections[e]; sel != nil {
			if v, ok := sel.Obj().(*types.Var); ok && v.IsField() && grows(v.Type()) {
				return v.Origin()
			}
		}
	}
	return nil
}

// aliases notes variables that are a field's map: m := x.f, and x.f = m.
func (s *source) aliases(u *mapUse, fn *ast.FuncDecl) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i := range a.Lhs {
			if id, ok := a.Lhs[i].(*ast.Ident); ok {
				if f := s.field(u, a.Rhs[i]); f != nil {
					if t := s.info.TypeOf(id); t != nil && grows(t) {
						u.alias[s.info.ObjectOf(id)] = f
					}
				}
			}
		}
		return true
	})
}

func (s *source) mapStatement(u *mapUse, n ast.Node) {
	insert := func(e ast.Expr) {
		if at, ok := e.(*ast.IndexExpr); ok {
			if _, isMap := underlying(s.info.TypeOf(at.X)).(*types.Map); isMap {
				if f := s.field(u, at.X); f != nil {
					u.inserted[f] = true
				}
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			insert(left)
		}
	case *ast.IncDecStmt:
		insert(n.X)
	case *ast.CallExpr:
		s.mapCall(u, n)
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL:
			s.lengthOf(u, n.X, n.Y)
			s.lengthOf(u, n.Y, n.X)
		}
	}
}

// mapCall notes maps.Copy and maps.Insert into a field, and sync.Map's Store.
func (s *source) mapCall(u *mapUse, call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	fn, ok := s.info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return
	}
	var into ast.Expr
	switch {
	case fn.Pkg().Path() == "maps" && (fn.Name() == "Copy" || fn.Name() == "Insert") && len(call.Args) > 0:
		into = call.Args[0]
	case fn.Pkg().Path() == "sync" && slices.Contains([]string{"Store", "LoadOrStore", "Swap"}, fn.Name()):
		into = sel.X
	default:
		return
	}
	if f := s.field(u, into); f != nil {
		u.inserted[f] = true
	}
}

// lengthOf notes a comparison of a field's length with something that is not 0.
func (s *source) lengthOf(u *mapUse, e, with ast.Expr) {
	if v := s.info.Types[with].Value; v != nil && v.String() == "0" {
		return
	}
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f := s.boundedLen(call); f != nil && u.lengths[f] == nil {
			u.lengths[f] = call
		}
		if len(call.Args) != 1 {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "len" {
			if f := s.field(u, call.Args[0]); f != nil {
				u.compared[f] = true
			}
		}
		return true
	})
}

// boundedLen returns the field that is a bounded.Map and whose length is asked for; nil where the call is
// another.
func (s *source) boundedLen(call *ast.CallExpr) *types.Var {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Len" {
		return nil
	}
	called, ok := s.info.Uses[sel.Sel].(*types.Func)
	if !ok || called.Pkg() == nil || !strings.HasSuffix(called.Pkg().Path(), "/internal/bounded") || named(s.info.TypeOf(sel.X)) != "Map" {
		return nil
	}
	of, ok := sel.X.(*ast.SelectorExpr)
	if !ok || s.info.Selections[of] == nil {
		return nil
	}
	f, ok := s.info.Selections[of].Obj().(*types.Var)
	if !ok {
		return nil
	}
	return f.Origin()
}
