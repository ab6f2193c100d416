// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is the type-checked source of a module, without tests.
type tree struct {
	dir      string // absolute
	module   string
	fset     *token.FileSet
	packages []*source
}

// source is a package. Files that are generated were type-checked and are not among files.
type source struct {
	path    string // below the module: "internal/model"
	files   []*ast.File
	types   *types.Package
	info    *types.Info
	imports []string // of the module, below it
}

type listed struct {
	ImportPath, Dir, Export    string
	DepOnly                    bool
	GoFiles, CgoFiles, Imports []string
	Module                     *struct{ Path string }
}

// load reads the packages of the module in dir that match the patterns.
func load(ctx context.Context, dir string, patterns ...string) (*tree, error) {
	args := append([]string{"list", "-trimpath", "-export", "-deps", "-json=ImportPath,Dir,Export,DepOnly,GoFiles,CgoFiles,Imports,Module", "--"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	t := &tree{dir: dir, fset: token.NewFileSet()}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages of %s: %w", dir, err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && l.Module != nil && len(l.CgoFiles) == 0 {
			own, t.module = append(own, l), l.Module.Path
		}
	}
	imports := importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, l := range own {
		s, err := t.check(l, imports)
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", l.ImportPath, err)
		}
		t.packages = append(t.packages, s)
	}
	return t, nil
}

func (t *tree) check(l listed, imports types.Importer) (*source, error) {
	s := &source{path: t.below(l.ImportPath), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	var all []*ast.File
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(t.fset, filepath.Join(l.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
		if !ast.IsGenerated(f) {
			s.files = append(s.files, f)
		}
	}
	for _, i := range l.Imports {
		if strings.HasPrefix(i, t.module+"/") {
			s.imports = append(s.imports, t.below(i))
		}
	}
	config := types.Config{Importer: imports}
	var err error
	s.types, err = config.Check(l.ImportPath, t.fset, all, s.info)
	return s, err
}

func (t *tree) below(path string) string {
	if path == t.module {
		return "."
	}
	return strings.TrimPrefix(path, t.module+"/")
}

// place names where a node is: "internal/model/finding.go:12".
func (t *tree) place(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	rel, err := filepath.Rel(t.dir, p.Filename)
	if err != nil {
		rel = p.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(rel), p.Line)
}

// functions calls f with each function that has a body.
func (s *source) functions(f func(*ast.FuncDecl)) {
	for _, file := range s.files {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				f(fn)
			}
		}
	}
}

// owner names a function's receiver type, or the function where it has none.
func owner(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	at := fn.Recv.List[0].Type
	for {
		switch e := at.(type) {
		case *ast.StarExpr:
			at = e.X
		case *ast.IndexExpr:
			at = e.X
		case *ast.IndexListExpr:
			at = e.X
		case *ast.Ident:
			return e.Name
		default:
			return fn.Name.Name
		}
	}
}

// named returns the name of a type, or of what a pointer points to; "" where it has none.
func named(t types.Type) string {
	if t == nil {
		return ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// structOf returns the struct behind a type or a pointer to it; nil where there is none.
func structOf(t types.Type) *types.Struct {
	if t == nil {
		return nil
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// below reports whether a path is one of the folders or in one.
func below(path string, folders ...string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}
