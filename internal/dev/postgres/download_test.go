package postgres

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// jar is what Maven Central serves: an archive of programs in an archive.
func jar(t *testing.T) []byte {
	t.Helper()
	root := t.TempDir()
	fakeInstallation(t, filepath.Join(root, "bin"), "17.5")
	txz, err := exec.Command("tar", "-C", root, "-cJf", "-", ".").Output()
	if err != nil {
		t.Skipf("cannot make an archive to download: %v", err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("postgres.txz")
	if err == nil {
		_, err = w.Write(txz)
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDownloadsOnceAndOnlyTheBinaries(t *testing.T) {
	archive, served := jar(t), new(atomic.Int32)
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves an empty log there
	maven := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		served.Add(1)
		_, _ = w.Write(archive)
	}))
	defer maven.Close()
	f := bareFinder(t)
	f.sources = []source{downloader{repository: maven.URL, log: io.Discard}.fetch}
	for range 2 {
		in, err := f.find(t.Context())
		if err != nil || in.version != "17.5" {
			t.Fatalf("found %+v, error %v", in, err)
		}
	}
	cache, _ := f.cache()
	left, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	if names := fmt.Sprint(left); served.Load() != 1 || len(left) != 2 {
		t.Errorf("%d downloads, left %s, want 1 and the binaries and the lock", served.Load(), names)
	}
}
