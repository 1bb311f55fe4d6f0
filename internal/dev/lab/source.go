package lab

import (
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"example.com/orders/internal/dev/scenario"
)

// shown is which files of the checkout are shown.
var shown = []string{".go", ".md", ".sql", ".yaml"}

// read reads a file of the checkout. It never leaves the checkout, nor does it read what is hidden there.
func (l *Lab) read(name string) (string, error) {
	hidden := slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
	if l.root == nil || hidden || !fs.ValidPath(name) || !slices.Contains(shown, path.Ext(name)) {
		return "", fs.ErrNotExist
	}
	raw, err := l.root.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	return string(raw), nil
}

// getSource shows a file as text whose lines have anchors: #L1 and so on.
func (l *Lab) getSource(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	text, err := l.read(name)
	if err != nil {
		problem(w, http.StatusNotFound, "there is no such file here; it is in the repository")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>%[1]s</title>\n"+
		"<link rel=\"stylesheet\" href=\"/lab/source.css\">\n<main>\n<h1>%[1]s</h1>\n<pre>", html.EscapeString(name))
	n := 0
	for line := range strings.Lines(text) {
		n++
		fmt.Fprintf(w, "<span id=\"L%[1]d\"><a href=\"#L%[1]d\">%4[1]d</a> %[2]s</span>", n, html.EscapeString(line))
	}
	fmt.Fprint(w, "</pre>\n</main>\n</html>\n")
}

// href is where a place in the repository is shown, at its line where the file is here.
func (l *Lab) href(to scenario.Link) string {
	if l.root == nil {
		return "/lab/source/" + to.Path
	}
	file, line := to.Find(l.root.FS())
	return fmt.Sprintf("/lab/source/%s#L%d", file, line)
}
