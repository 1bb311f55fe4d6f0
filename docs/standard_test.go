package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// provisions is the standard: the ids of litespec/ext/concurrency, in its order.
func provisions() []string {
	return []string{
		"document-write-conflict-behavior",
		"limit-version-checks",
		"compare-expected-aggregate-versions",
		"map-failed-expected-versions",
		"reject-silent-overwrites",
		"apply-http-version-preconditions",
		"return-precondition-outcomes",
		"hide-provider-version-values",
		"run-idempotency-in-the-pipeline",
		"scope-client-keys",
		"store-idempotency-state-atomically",
		"reject-conflicting-key-reuse",
		"enforce-key-uniqueness",
		"canonicalize-request-fingerprints",
		"protect-fingerprint-source-data",
		"replay-completed-results",
		"define-concurrent-retry-behavior",
		"reload-concurrent-winners",
		"discard-failed-replay-state",
		"delay-irreversible-provider-calls",
		"route-required-external-effects-durably",
		"set-key-retention",
		"bound-expired-record-cleanup",
		"retain-safe-retry-keys",
		"declare-replayed-transport-outcomes",
		"restrict-replay-data",
		"exclude-unsafe-replay-outcomes",
		"use-the-standard-idempotency-header",
		"keep-idempotency-persistence-in-infrastructure",
		"map-replay-responses-at-the-api-boundary",
		"declare-applicable-headers",
	}
}

// provision is a section of docs/standard.md.
type provision struct {
	id, sentence, file, symbol string
	pages                      []string
	commands                   [][2]string // package and test
}

var (
	section     = regexp.MustCompile(`(?ms)^### ([a-z-]+)\n\n(.+?)\n\nCode: (.+?)\n\n((?: {4}[^\n]+\n)+)`)
	place       = regexp.MustCompile("(?s)^\\[`([^`]+)`\\]\\(\\.\\./([^)]+)\\)\\.\\sPages?:\\s(.+)\\.$")
	testCommand = regexp.MustCompile(`(?m)^ {4}go test \./(\S+) -run '\^((?:Test|Fuzz)\w+)\$'$`)
	link        = regexp.MustCompile(`\]\(([^)#]+)\)`)
	blocks      = regexp.MustCompile("(?ms)^```.*?^```$")
	testName    = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
)

func standardPage(t testing.TB) []provision {
	t.Helper()
	text := read(t, "standard.md")
	var all []provision
	for _, m := range section.FindAllStringSubmatch(text, -1) {
		where := place.FindStringSubmatch(m[3])
		require.NotNil(t, where, "%s: Code: … Page: …", m[1])
		p := provision{id: m[1], sentence: m[2], file: where[2], symbol: where[1]}
		for _, page := range link.FindAllStringSubmatch(where[3], -1) {
			p.pages = append(p.pages, page[1])
		}
		for _, c := range testCommand.FindAllStringSubmatch(m[4], -1) {
			p.commands = append(p.commands, [2]string{c[1], c[2]})
		}
		require.Len(t, p.commands, strings.Count(m[4], "\n"), "%s: a line that runs no test", p.id)
		all = append(all, p)
	}
	require.Len(t, all, strings.Count(text, "\n### "), "a section is not complete")
	return all
}

// Ensure docs/standard.md states each provision of the standard in one sentence, and names one place in the code that is
// there, a page that is there, and commands that run tests which say of themselves that they prove it.
func TestStandardPageIsTrue(t *testing.T) {
	t.Parallel()
	existing := tests(t)
	var ids []string
	for _, p := range standardPage(t) {
		ids = append(ids, p.id)
		require.Regexp(t, `^[A-Z][^.]+\.$`, p.sentence, "%s: one sentence", p.id)
		requireSymbol(t, p.file, p.symbol)
		require.NotEmpty(t, p.pages, "%s: a page that states it", p.id)
		for _, page := range p.pages {
			require.FileExists(t, filepath.FromSlash(page), p.id)
		}
		for _, c := range p.commands {
			if !slices.ContainsFunc(existing[c[1]], func(test goTest) bool {
				return path.Dir(test.file) == c[0] && slices.Contains(test.marks, p.id)
			}) {
				t.Errorf("%s: ./%s has no %s that is marked with it", p.id, c[0], c[1])
			}
		}
	}
	require.Equal(t, provisions(), ids)
}

// Ensure every provision of the standard has a test that is marked with it, and every mark names a provision.
func TestEveryProvisionIsTested(t *testing.T) {
	t.Parallel()
	marked := map[string]bool{}
	for name, all := range tests(t) {
		for _, test := range all {
			for _, id := range test.marks {
				marked[id] = true
				if !slices.Contains(provisions(), id) {
					t.Errorf("%s: %s is marked with %q, which the standard does not have", test.file, name, id)
				}
			}
		}
	}
	for _, id := range provisions() {
		if !marked[id] {
			t.Errorf("no test is marked with // Standard: litespec/ext/concurrency#%s", id)
		}
	}
}

// pages is every Markdown page of this folder.
func pages(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

// Ensure every link of every page, those of the root included, leads to a file, and every test that a page names exists.
func TestPagesPointAtWhatExists(t *testing.T) {
	t.Parallel()
	existing := tests(t)
	root, err := filepath.Glob("../*.md")
	require.NoError(t, err)
	for _, page := range append(root, pages(t)...) {
		text := blocks.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "://") {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
					t.Errorf("docs/%s links to %s, which does not exist", page, m[1])
				}
			}
		}
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if len(existing[m[1]]) == 0 {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
	}
}

// Ensure docs/README.md lists every page.
func TestIndexListsEveryPage(t *testing.T) {
	t.Parallel()
	index := read(t, "README.md")
	for _, page := range pages(t) {
		if page != "README.md" && !strings.Contains(index, "]("+filepath.ToSlash(page)+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}
