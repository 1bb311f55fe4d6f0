package docs_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aggregates is the repositories of a transaction, by the method that gives each, and the aggregate that it saves.
var aggregates = map[string]string{"Orders": "order", "Payments": "payment", "Products": "product", "Stock": "stock"}

// bookkeeping is the repositories of what is no aggregate: no caller and no other use case has seen it.
var bookkeeping = map[string]bool{"Watermarks": true}

// useCaseCode is the functions of internal/app by name, and the methods of the service and of the types that embed it, such
// as one run of a job, as Type.method.
func useCaseCode(t testing.TB) map[string]*ast.FuncDecl {
	t.Helper()
	functions, methods, types := map[string]*ast.FuncDecl{}, map[string]*ast.FuncDecl{}, map[string]bool{"Service.": true}
	for _, file := range goFiles(t, "internal/app", isCode) {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receiver(d) == "" {
					functions[d.Name.Name] = d
				} else {
					methods[receiver(d)+d.Name.Name] = d
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && embedsService(s) {
						types[s.Name.Name+"."] = true
					}
				}
			}
		}
	}
	for name, f := range methods {
		if types[receiver(f)] {
			functions[name] = f
		}
	}
	return functions
}

func embedsService(s *ast.TypeSpec) bool {
	structure, ok := s.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(structure.Fields.List, func(f *ast.Field) bool {
		star, ok := f.Type.(*ast.StarExpr)
		return ok && len(f.Names) == 0 && nameOf(star.X) == "Service"
	})
}

// nameOf is the name that an expression is; empty: it is none.
func nameOf(e ast.Expr) string {
	if ident, ok := e.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// typesIn is the types of a function's receiver and of its variables that are made by a composite literal.
func typesIn(f *ast.FuncDecl) map[string]string {
	types := map[string]string{}
	if f.Recv != nil && len(f.Recv.List[0].Names) == 1 {
		types[f.Recv.List[0].Names[0].Name] = strings.TrimSuffix(receiver(f), ".")
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
			if literal, ok := a.Rhs[0].(*ast.CompositeLit); ok {
				types[nameOf(a.Lhs[0])] = nameOf(literal.Type)
			}
		}
		return true
	})
	return types
}

// saves adds the aggregates that a function saves, and those that it saves by way of the functions that it names.
func saves(functions map[string]*ast.FuncDecl, name string, seen, saved map[string]bool) {
	f := functions[name]
	if f == nil || seen[name] {
		return
	}
	seen[name] = true
	types := typesIn(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			saves(functions, n.Name, seen, saved)
		case *ast.SelectorExpr:
			noteSave(n, saved)
			x := ast.Unparen(n.X)
			of := types[nameOf(x)]
			if literal, ok := x.(*ast.CompositeLit); ok {
				of = nameOf(literal.Type)
			}
			if of == "" {
				return nameOf(x) == "" // a field or function of something else is none of the service's
			}
			if method := of + "." + n.Sel.Name; functions[method] != nil {
				saves(functions, method, seen, saved)
			} else {
				saves(functions, "Service."+n.Sel.Name, seen, saved) // by embedding
			}
		}
		return true
	})
}

// noteSave adds the aggregate of a call of Save on a repository that the transaction gives.
func noteSave(n *ast.SelectorExpr, saved map[string]bool) {
	if n.Sel.Name != "Save" {
		return
	}
	repository := ""
	if call, ok := n.X.(*ast.CallExpr); ok {
		if of, ok := call.Fun.(*ast.SelectorExpr); ok {
			repository = of.Sel.Name
		}
	}
	switch {
	case aggregates[repository] != "":
		saved[aggregates[repository]] = true
	case !bookkeeping[repository]:
		saved["of an unknown repository: call Save on one that the transaction gives"] = true
	}
}

// methodOf is the method of the service that is an operation: change-shipping-address is ChangeShippingAddress.
func methodOf(operation string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(operation, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// Ensure a record lists the aggregates that its use case saves, as the code does.
func TestRecordsListWhatTheyChange(t *testing.T) {
	t.Parallel()
	functions := useCaseCode(t)
	for name, u := range useCases(t) {
		saved := map[string]bool{}
		saves(functions, "Service."+methodOf(name), map[string]bool{}, saved)
		if functions["Service."+methodOf(name)] == nil && name != "purge-idempotency-keys" { // which the store does by itself
			t.Errorf("internal/app has no Service.%s for %s", methodOf(name), name)
			continue
		}
		stated := map[string]bool{}
		for _, a := range u.Changes {
			stated[a] = true
		}
		require.Equal(t, saved, stated, "%s: the aggregates that it changes", name)
		require.True(t, slices.IsSorted(u.Changes), "%s: changes are not sorted", name)
	}
}

// meets reports whether a record states what happens when it meets another writer of an aggregate.
func (u useCase) meets(other, aggregate string) bool {
	return slices.ContainsFunc(u.Conflicts, func(c conflict) bool { return c.With == other }) ||
		slices.ContainsFunc(u.Contention.Races, func(r race) bool { return r.With == other }) ||
		slices.ContainsFunc(u.Contention.Rows, func(r sharedRow) bool {
			return r.Of == aggregate && slices.Contains(r.With, other)
		})
}

// Ensure any two use cases that change one aggregate, a use case and itself included, have their meeting stated in the record
// of one of them: as a conflict, as a race, or as a row that they share.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
func TestWritersOfAnAggregateKnowEachOther(t *testing.T) {
	t.Parallel()
	all := useCases(t)
	var missing []string
	for name, u := range all {
		for _, aggregate := range u.Changes {
			for other, o := range all {
				if name <= other && slices.Contains(o.Changes, aggregate) && !u.meets(other, aggregate) && !o.meets(name, aggregate) {
					missing = append(missing, fmt.Sprintf("%s and %s both change the %s, and neither record names the other: name it under "+
						"conflicts where the caller sends a version, else under contention.rows", name, other, aggregate))
				}
			}
		}
		for _, r := range u.Contention.Rows {
			for _, other := range r.With {
				if !slices.Contains(u.Changes, r.Of) || !slices.Contains(all[other].Changes, r.Of) {
					missing = append(missing, fmt.Sprintf("docs/usecases/%s.yaml shares no row of the %s with %s", name, r.Of, other))
				}
			}
		}
	}
	slices.Sort(missing)
	for _, m := range missing {
		t.Error(m)
	}
}
