// Command rename turns a clone of this template into a new service: `make rename MODULE=github.com/acme/billing NAME=billing`.
//
// "orders" names two things here: the service, and the sample domain's table, resource and scopes. names.go tells them
// apart. The service's name is replaced; the domain's words stay until its aggregates are replaced.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// self is this program's folder, which states the old names and is left as it is.
const self = "scripts/rename/"

func main() {
	var to target
	flag.StringVar(&to.module, "module", "", "path of the Go module, such as github.com/acme/billing")
	flag.StringVar(&to.name, "name", "", "name of the service, such as billing")
	flag.StringVar(&to.host, "host", "", "host of the problem types' addresses (NAME.example.com)")
	flag.Parse()
	if err := run(to); err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(2)
	}
}

func run(to target) error {
	files, err := check(&to)
	if err != nil {
		return err
	}
	var left []string
	for _, path := range files {
		more, err := rewrite(path, to)
		if err != nil {
			return err
		}
		left = append(left, more...)
	}
	if len(left) > 0 {
		return fmt.Errorf("done, but these lines still name the old service:\n%s", strings.Join(left, "\n"))
	}
	fmt.Printf("This is %s now, module %s. Its problem types are at https://%s/problems/ (HOST= names another).\n"+
		"Next: make check-generate && make lint && make test; then read git diff, commit, and delete %s.\n",
		to.name, to.module, to.host, strings.TrimSuffix(self, "/"))
	return nil
}

// check refuses what cannot be done, before anything is changed. It returns the files of the clone.
func check(to *target) ([]string, error) {
	goMod, err := os.ReadFile("go.mod")
	if err != nil {
		return nil, errors.New("there is no go.mod here: run make rename at the top of the clone")
	}
	if first, _, _ := strings.Cut(string(goMod), "\n"); first != "module "+oldModule {
		return nil, fmt.Errorf("already renamed: go.mod says %q", first)
	}
	if err := to.complete(); err != nil {
		return nil, err
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, errors.New("there are changes that are not committed: commit or stash them, so that the rename can be undone")
	}
	list, err := git("ls-files", "-z")
	return strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"), err
}

func git(args ...string) (string, error) {
	var out, problem bytes.Buffer
	c := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	c.Stdout, c.Stderr = &out, &problem
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// rewrite renames what one file says, and the file itself. It returns the lines that still name the old service.
func rewrite(path string, to target) (left []string, err error) {
	if strings.HasPrefix(path, self) || path == "LICENSE" { // whose notice stays
		return nil, nil
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	before, err := os.ReadFile(path)
	if err != nil || bytes.IndexByte(before, 0) >= 0 { // not a text
		return nil, err
	}
	after := []byte(to.rename(dropTemplateBlocks(string(before))))
	if filepath.Ext(path) == ".go" && !bytes.Equal(before, after) {
		if after, err = format.Source(after); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	renamed := to.rename(path)
	if renamed != path {
		err = os.Rename(path, renamed)
	}
	if err == nil && !bytes.Equal(before, after) {
		err = os.WriteFile(renamed, after, info.Mode().Perm())
	}
	for number, line := range strings.Split(string(after), "\n") {
		if namesOldService(line) {
			left = append(left, fmt.Sprintf("%s:%d: %s", renamed, number+1, strings.TrimSpace(line)))
		}
	}
	return left, err
}

// dropTemplateBlocks removes what speaks of the template alone: the lines from "template only: begin" to "template only: end".
func dropTemplateBlocks(text string) string {
	if !strings.Contains(text, "template only: begin") {
		return text
	}
	var kept strings.Builder
	inside, last := false, ""
	for line := range strings.Lines(text) {
		inside = inside || strings.Contains(line, "template only: begin")
		if !inside && (line != "\n" || last != "\n") { // a block leaves one empty line
			kept.WriteString(line)
			last = line
		}
		inside = inside && !strings.Contains(line, "template only: end")
	}
	return kept.String()
}
