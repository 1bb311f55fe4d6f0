package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// writeProfile keeps a CPU profile of the API under place-order.
func (b *bench) writeProfile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.writing()+stopWait)
	defer cancel()
	seconds := max(1, int(b.writing().Seconds()))
	done := make(chan error, 1)
	go func() {
		done <- download(ctx, b.api.ops+"/debug/pprof/profile?seconds="+strconv.Itoa(seconds), b.profile)
	}()
	_, err := b.load(ctx, typical, time.Duration(seconds)*time.Second, b.placing(1, newShelf(typical)))
	return errors.Join(err, <-done)
}

func download(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: answered %s", response.Status)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return os.WriteFile(path, raw, 0o600)
}
