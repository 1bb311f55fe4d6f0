package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeInstallation has programs that know their version only.
func fakeInstallation(t *testing.T, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindsThisMachinesInstallation(t *testing.T) {
	dir, err := FindBinDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

func TestWrongBinDirNamesTheVariable(t *testing.T) {
	old := fakeInstallation(t, filepath.Join(openDir(t), "bin"), "14.9 (Debian 14.9-1)")
	for dir, words := range map[string]string{"/nonexistent": "no PostgreSQL bin directory", old: "14.9, but at least 15"} {
		t.Setenv("PG_BINDIR", dir)
		_, err := Start(t.Context(), Options{})
		mustContain(t, err, "PG_BINDIR", dir, words)
	}
}

func TestPathComesFirstAndLinksAreResolved(t *testing.T) {
	root := openDir(t)
	real := fakeInstallation(t, filepath.Join(root, "pg16", "bin"), "16.2")
	fakeInstallation(t, filepath.Join(root, "usual", "17", "bin"), "17.1")
	links := openDir(t)
	if err := os.Symlink(filepath.Join(real, "pg_ctl"), filepath.Join(links, "pg_ctl")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	in, err := findIn(t.Context(), "", []string{root + "/usual/*/bin"})
	if err != nil || in.dir != real || in.version != "16.2" || in.major != 16 {
		t.Errorf("found %+v, error %v, want %s", in, err, real)
	}
}

func TestNewestOfTheUsualPlacesAndNoneTooOld(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	root := openDir(t)
	for _, v := range []string{"9.6", "14", "16", "17beta2"} {
		fakeInstallation(t, filepath.Join(root, "pg-"+v, "bin"), v)
	}
	in, err := findIn(t.Context(), "", []string{root + "/pg-*/bin"})
	if err != nil || in.version != "17beta2" || in.major != 17 {
		t.Errorf("found %+v, error %v, want 17beta2", in, err)
	}
}

func TestOneLineSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	_, err := findIn(t.Context(), "", nil)
	mustContain(t, err, "scripts/postgres.sh", "apt-get install postgresql", "PG_BINDIR")
	if strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
