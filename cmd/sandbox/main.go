// Command sandbox serves the stand-in for Stripe, with its token mint, on SANDBOX_ADDR. It is for local work and tests.
package main

import (
	"context"
	"log/slog"
	"os"

	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/infra/config"
)

func main() {
	process.Serve("sandbox", process.Health{Variable: "SANDBOX_ADDR", Default: "127.0.0.1:8089", Path: "/livez"}, run)
}

func run(ctx context.Context, _ config.Lookup, log *slog.Logger) error {
	set, err := sandbox.SettingsFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	set.Log = log
	server, err := sandbox.Listen(ctx, set)
	if err != nil {
		return err
	}
	log.Info("sandbox ready", "url", server.URL(), "issuer", set.Issuer, "audience", set.Audience)
	return server.Serve(ctx)
}
