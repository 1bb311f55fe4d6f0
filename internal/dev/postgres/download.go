package postgres

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

const (
	mavenCentral = "https://repo1.maven.org/maven2"
	probeTimeout = 10 * time.Second
)

// downloader obtains the binaries that the embedded-postgres library knows, and nothing more of it: its own start
// refuses root and leaves orphans.
type downloader struct {
	repository string
	log        io.Writer
}

// fetch downloads once and finds the result again later.
func (d downloader) fetch(ctx context.Context, cache string) (string, error) {
	home := filepath.Join(cache, string(embedded.V17))
	if err := d.ensure(ctx, home); err != nil {
		return "", fmt.Errorf("download PostgreSQL: %w", err)
	}
	return filepath.Join(home, "bin"), nil
}

func (d downloader) ensure(ctx context.Context, home string) error {
	if _, err := os.Stat(home); err == nil {
		return nil
	}
	if err := d.probe(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.log, "embedded postgres: downloading PostgreSQL %s from %s to %s\n", embedded.V17, d.repository, home)
	return d.download(ctx, home)
}

// probe fails soon where there is no network; the library's own requests have no time limit.
func (d downloader) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, d.repository+"/", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// download works in a directory of its own, so that home is complete or not there.
func (d downloader) download(ctx context.Context, home string) error {
	work, err := os.MkdirTemp(filepath.Dir(home), "download-")
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() { got <- d.unpack(work) }()
	select {
	case <-ctx.Done():
		return ctx.Err() // work stays: the library cannot be interrupted and still writes there
	case err = <-got:
	}
	defer os.RemoveAll(work)
	if _, missing := os.Stat(filepath.Join(work, "pg", "bin", "postgres")); missing != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "pg"), home)
}

// unpack has the library download and unpack, and then fail on purpose: a data directory below a file cannot be made.
// It has no call for the first half alone.
func (d downloader) unpack(work string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	pg := filepath.Join(work, "pg")
	return embedded.NewDatabase(embedded.DefaultConfig().
		Version(embedded.V17).
		Port(uint32(port)).
		BinaryRepositoryURL(d.repository).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "run")).
		BinariesPath(pg).
		DataPath(filepath.Join(pg, "bin", "postgres", "none")).
		Logger(io.Discard)).Start()
}
