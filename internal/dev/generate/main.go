// Command generate writes what follows from the contract and the use-case records, beside what oapi-codegen makes: the
// table of use cases, the table of problem codes, and the pages that list them. `make generate` runs it.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed templates.tmpl
var templates string

// outputs are the files that this program writes, each by the template of its name. In a page, only what stands between the
// marks is written.
var outputs = []struct{ template, file string }{
	{"usecases", "internal/app/usecases.gen.go"},
	{"problem-types", "internal/httpapi/problem_types.gen.go"},
	{"problems", "docs/problems.md"},
	{"index", "docs/usecases/README.md"},
}

// The marks of what is generated in a page.
const (
	begin = "<!-- begin generated: make generate -->\n"
	end   = "<!-- end generated -->\n"
)

func main() {
	check := flag.Bool("check", false, "change nothing; fail where a file is not what would be written")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	service, err := load()
	if err != nil {
		return err
	}
	made, err := template.New("").Funcs(template.FuncMap{"camel": camel}).Parse(templates)
	if err != nil {
		return fmt.Errorf("parse templates: %w", err)
	}
	for _, o := range outputs {
		var text bytes.Buffer
		if err := made.ExecuteTemplate(&text, o.template, service); err != nil {
			return fmt.Errorf("make %s: %w", o.file, err)
		}
		if err := write(o.file, text.Bytes(), check); err != nil {
			return err
		}
	}
	return nil
}

// write puts a text into its file, or compares the two.
func write(file string, text []byte, check bool) error {
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read what is there: %w", err)
	}
	switch filepath.Ext(file) {
	case ".go":
		if text, err = format.Source(text); err != nil {
			return fmt.Errorf("format %s: %w", file, err)
		}
	case ".md":
		head, rest, ok := bytes.Cut(before, []byte(begin))
		_, tail, closed := bytes.Cut(rest, []byte(end))
		if !ok || !closed {
			return fmt.Errorf("%s has no marks around what is generated", file)
		}
		text = bytes.Join([][]byte{head, []byte(begin), text, []byte(end), tail}, nil)
	}
	switch {
	case bytes.Equal(before, text):
		return nil
	case check:
		return fmt.Errorf("%s is stale: run make generate", file)
	}
	return os.WriteFile(file, text, 0o644)
}

// camel is an operation as a name in Go: change-shipping-address is ChangeShippingAddress.
func camel(operation string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(operation, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
