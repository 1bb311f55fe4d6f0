package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

func bareFinder(t *testing.T) finder {
	t.Helper()
	t.Setenv("PATH", "/nonexistent")
	cache := openDir(t)
	return finder{cache: func() (string, error) { return cache, nil }, log: io.Discard}
}

func TestFindsThisMachinesInstallation(t *testing.T) {
	dir, err := FindBinDir(t.Context(), io.Discard)
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
	f := bareFinder(t)
	root := openDir(t)
	real := fakeInstallation(t, filepath.Join(root, "pg16", "bin"), "16.2")
	fakeInstallation(t, filepath.Join(root, "usual", "17", "bin"), "17.1")
	links := openDir(t)
	if err := os.Symlink(filepath.Join(real, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	f.places = []string{root + "/usual/*/bin"}
	in, err := f.find(t.Context())
	if err != nil || in.dir != real || in.version != "16.2" || in.major != 16 {
		t.Errorf("found %+v, error %v, want %s", in, err, real)
	}
}

func TestNewestOfTheUsualPlacesAndNoneTooOld(t *testing.T) {
	f := bareFinder(t)
	root := openDir(t)
	for _, v := range []string{"9.6", "14", "16", "17beta2"} {
		fakeInstallation(t, filepath.Join(root, "pg-"+v, "bin"), v)
	}
	f.places = []string{root + "/pg-*/bin"}
	in, err := f.find(t.Context())
	if err != nil || in.version != "17beta2" || in.major != 17 {
		t.Errorf("found %+v, error %v, want 17beta2", in, err)
	}
}

func TestSourcesInOrderAndALookAfterEach(t *testing.T) {
	f := bareFinder(t)
	root := openDir(t)
	f.places = []string{root + "/*/bin"}
	var tried []string
	f.sources = []source{
		func(context.Context, string) (string, error) {
			tried = append(tried, "download")
			return "", errors.New("no network")
		},
		func(context.Context, string) (string, error) {
			tried = append(tried, "package")
			fakeInstallation(t, filepath.Join(root, "15", "bin"), "15.18")
			return "", nil
		},
	}
	in, err := f.find(t.Context())
	if err != nil || in.version != "15.18" || strings.Join(tried, " ") != "download package" {
		t.Errorf("found %+v, error %v, tried %v", in, err, tried)
	}
}

func TestOneLineSaysWhatToInstall(t *testing.T) {
	f := bareFinder(t)
	f.sources = []source{downloader{repository: "http://127.0.0.1:1", log: io.Discard}.fetch}
	began := time.Now()
	_, err := f.find(t.Context())
	mustContain(t, err, "apt-get install postgresql", "PG_BINDIR", "found none", "connection refused")
	if strings.Contains(err.Error(), "\n") || time.Since(began) > probeTimeout {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	log := &tail{}
	for range tailLines {
		_, _ = io.WriteString(log, "early\n")
	}
	_, _ = io.Copy(log, bytes.NewBufferString(strings.Repeat("late\n", tailLines-1)+"in the mid"))
	_, _ = io.WriteString(log, "dle")
	if want := "early\n" + strings.Repeat("late\n", tailLines-1) + "in the middle"; log.String() != want {
		t.Errorf("kept %q, want %q", log, want)
	}
}
