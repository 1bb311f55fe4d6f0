package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/orders/scripts"
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

// onlyTools leaves on the PATH what the script needs and no PostgreSQL.
func onlyTools(t *testing.T) {
	t.Helper()
	dir := openDir(t)
	for _, name := range []string{"bash", "sh", "dirname", "grep", "head", "readlink", "sort"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("PG_BINDIR", "")
}

// scriptFor is the script for a machine whose usual places are below root.
func scriptFor(root string) string {
	return regexp.MustCompile(`(/usr|/opt|/Applications)/\S*bin\b`).ReplaceAllString(scripts.PostgreSQL, root+"/*/bin")
}

func TestFindsThisMachinesInstallation(t *testing.T) {
	dir, err := FindBinDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PG_BINDIR", dir)
	if again, err := FindBinDir(t.Context()); err != nil || again != dir {
		t.Errorf("found %s, error %v, want %s", again, err, dir)
	}
}

func TestWrongBinDirNamesTheVariable(t *testing.T) {
	old := fakeInstallation(t, filepath.Join(openDir(t), "bin"), "14.9 (Debian 14.9-1)")
	for _, dir := range []string{"/nonexistent", old} {
		t.Setenv("PG_BINDIR", dir)
		_, err := Start(t.Context(), Options{})
		mustContain(t, err, "PG_BINDIR", dir, "no PostgreSQL 15 or newer")
	}
}

func TestPathComesFirstAndLinksAreResolved(t *testing.T) {
	root := openDir(t)
	real := fakeInstallation(t, filepath.Join(openDir(t), "bin"), "16.2")
	fakeInstallation(t, filepath.Join(root, "17", "bin"), "17.1")
	onlyTools(t)
	if err := os.Symlink(filepath.Join(real, "pg_ctl"), filepath.Join(os.Getenv("PATH"), "pg_ctl")); err != nil {
		t.Fatal(err)
	}
	in, err := find(t.Context(), scriptFor(root))
	if want := (installation{real, "16.2", "16"}); err != nil || in != want {
		t.Errorf("found %+v, error %v, want %+v", in, err, want)
	}
}

func TestNewestOfTheUsualPlacesAndNoneTooOld(t *testing.T) {
	onlyTools(t)
	root := openDir(t)
	for _, v := range []string{"9.6", "14", "16", "17beta2"} {
		fakeInstallation(t, filepath.Join(root, v, "bin"), v)
	}
	in, err := find(t.Context(), scriptFor(root))
	if want := (installation{filepath.Join(root, "17beta2", "bin"), "17beta2", "17"}); err != nil || in != want {
		t.Errorf("found %+v, error %v, want %+v", in, err, want)
	}
}

func TestOneLineSaysWhatToInstall(t *testing.T) {
	onlyTools(t)
	_, err := find(t.Context(), scriptFor("/nonexistent"))
	mustContain(t, err, "scripts/postgres.sh", "apt-get install postgresql", "PG_BINDIR")
	if strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
