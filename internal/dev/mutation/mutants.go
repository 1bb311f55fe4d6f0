package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small change of one file.
type mutant struct {
	file     string // below the module's folder
	line     string // the changed line as it is, without the space around it
	number   int    // of that line
	from, to int    // the bytes that are replaced
	was, is  string
}

// key names a mutant as docs/mutation.md lists it: it survives a change elsewhere in the file.
func (m mutant) key() string {
	return fmt.Sprintf("`%s` | `%s` | %s", m.file, m.line, m.change())
}

func (m mutant) change() string {
	if m.is == "" {
		return "`" + m.was + "` is left out"
	}
	return "`" + m.was + "` becomes `" + m.is + "`"
}

// replacements are the operators that take the place of another.
var replacements = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.LAND: {"||"}, token.LOR: {"&&"}, token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.INC: {"--"}, token.DEC: {"++"},
}

// finder collects the mutants of one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	found  []mutant
}

// mutantsOf lists every mutant of a file, in order of its place.
func mutantsOf(file string) ([]mutant, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	f := &finder{file: file, source: source, set: token.NewFileSet()}
	parsed, err := parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse source: %w", err)
	}
	ast.Inspect(parsed, f.visit)
	return f.found, nil
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case ast.Expr:
		f.expression(n)
	case *ast.AssignStmt:
		f.operator(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		f.operator(n.TokPos, n.Tok)
	case *ast.ExprStmt:
		f.add(n.Pos(), n.End(), "")
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.ReturnStmt:
		f.result(n)
	}
	return true
}

func (f *finder) expression(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.ADD || !isText(e.X) && !isText(e.Y) {
			f.operator(e.OpPos, e.Op)
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			f.add(e.OpPos, e.X.Pos(), "")
		}
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[e.Name]; ok {
			f.add(e.Pos(), e.End(), other)
		}
	case *ast.BasicLit:
		if whole, err := strconv.ParseInt(e.Value, 0, 64); err == nil && e.Kind == token.INT {
			f.add(e.Pos(), e.End(), strconv.FormatInt(whole+1, 10))
		}
	}
}

func isText(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}

func (f *finder) operator(at token.Pos, op token.Token) {
	for _, other := range replacements[op] {
		f.add(at, at+token.Pos(len(op.String())), other)
	}
}

// negate turns a condition around that has no operator to replace.
func (f *finder) negate(condition ast.Expr) {
	switch condition.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr:
		f.add(condition.Pos(), condition.End(), "!"+f.text(condition.Pos(), condition.End()))
	}
}

// cases negates the conditions of a switch without a value.
func (f *finder) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, c := range s.Body.List {
		if clause, ok := c.(*ast.CaseClause); ok {
			for _, condition := range clause.List {
				f.negate(condition)
			}
		}
	}
}

// result forgets an error that is returned.
func (f *finder) result(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	name := f.text(last.Pos(), last.End())
	if i := strings.LastIndex(name, "."); i >= 0 {
		name = name[i+1:]
	}
	if strings.HasPrefix(name, "err") || strings.HasPrefix(name, "Err") {
		f.add(last.Pos(), last.End(), "nil")
	}
}

func (f *finder) text(from, to token.Pos) string {
	return string(f.source[f.set.Position(from).Offset:f.set.Position(to).Offset])
}

func (f *finder) add(from, to token.Pos, is string) {
	at := f.set.Position(from)
	m := mutant{
		file: f.file, number: at.Line, from: at.Offset, to: f.set.Position(to).Offset, is: is,
		line: strings.TrimSpace(strings.Split(string(f.source), "\n")[at.Line-1]),
	}
	m.was = strings.Join(strings.Fields(string(f.source[m.from:m.to])), " ")
	f.found = append(f.found, m)
}

// apply is the file with the change in it.
func (m mutant) apply() ([]byte, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	return slices.Concat(source[:m.from], []byte(m.is), source[m.to:]), nil
}
