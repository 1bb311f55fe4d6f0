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

// useCaseCode is the functions and methods of internal/app. A method of the service is called through its receiver, so
// its name here begins with a dot.
func useCaseCode(t testing.TB) map[string]*ast.FuncDecl {
	t.Helper()
	functions := map[string]*ast.FuncDecl{}
	for _, file := range goFiles(t, "internal/app", isCode) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				switch receiver(f) {
				case "":
					functions[f.Name.Name] = f
				case "Service.":
					functions["."+f.Name.Name] = f
				}
			}
		}
	}
	return functions
}

// saves adds the aggregates that a function saves, and those that it saves by way of the functions that it names.
func saves(functions map[string]*ast.FuncDecl, name string, seen, saved map[string]bool) {
	f := functions[name]
	if f == nil || seen[name] {
		return
	}
	seen[name] = true
	service := ""
	if f.Recv != nil && len(f.Recv.List[0].Names) == 1 {
		service = f.Recv.List[0].Names[0].Name
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			saves(functions, n.Name, seen, saved)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if n.Sel.Name == "Save" {
					saved["of a variable: call Save on the repository that the transaction gives"] = true
				}
				if x.Name == service {
					saves(functions, "."+n.Sel.Name, seen, saved)
				}
				return false
			}
			if repository, ok := n.X.(*ast.CallExpr); ok && n.Sel.Name == "Save" {
				if of, ok := repository.Fun.(*ast.SelectorExpr); ok {
					saved[aggregates[of.Sel.Name]] = true
				}
			}
		}
		return true
	})
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
		saves(functions, "."+methodOf(name), map[string]bool{}, saved)
		if functions["."+methodOf(name)] == nil && name != "purge-idempotency-keys" { // which the store does by itself
			t.Errorf("internal/app has no Service.%s for %s", methodOf(name), name)
		}
		stated := map[string]bool{}
		for _, a := range u.Changes {
			stated[a] = true
		}
		require.Equal(t, saved, stated, "%s: the aggregates that it changes", name)
		require.True(t, slices.IsSorted(u.Changes), "%s: changes are not sorted", name)
	}
}

// meets tells whether a record states what happens when it meets another writer of an aggregate.
func (u useCase) meets(other, aggregate string) bool {
	return slices.ContainsFunc(u.Conflicts, func(c conflict) bool { return c.With == other }) ||
		slices.ContainsFunc(u.Contention.Races, func(r race) bool { return r.With == other }) ||
		slices.ContainsFunc(u.Contention.Rows, func(r sharedRow) bool {
			return r.Of == aggregate && slices.Contains(r.With, other)
		})
}

// Ensure any two use cases that change one aggregate, a use case and itself included, have their meeting stated in both
// records: as a conflict, as a race, or as a row that they share.
//
// Standard: litespec/ext/concurrency#document-write-conflict-behavior
func TestWritersOfAnAggregateKnowEachOther(t *testing.T) {
	t.Parallel()
	all := useCases(t)
	var missing []string
	for name, u := range all {
		for _, aggregate := range u.Changes {
			for other, o := range all {
				if slices.Contains(o.Changes, aggregate) && !u.meets(other, aggregate) {
					missing = append(missing, fmt.Sprintf("docs/usecases/%s.yaml does not name %s, which changes the %s too",
						name, other, aggregate))
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
