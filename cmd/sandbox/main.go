// Command sandbox serves the stand-in for Stripe, with its token mint, on SANDBOX_ADDR. It is for local work and tests.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"example.com/orders/internal/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	set, err := sandbox.SettingsFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	set.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	server, err := sandbox.Listen(ctx, set)
	if err != nil {
		return err
	}
	set.Log.Info("sandbox ready", "url", server.URL(), "issuer", set.Issuer, "audience", set.Audience)
	return server.Serve(ctx)
}
