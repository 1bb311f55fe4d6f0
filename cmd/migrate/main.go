// Command migrate migrates a database to the schema of this release. No other command of the service changes the
// schema.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/orders/internal/boot/process"
	"example.com/orders/internal/infra/config"
	"example.com/orders/internal/infra/postgres"
	"example.com/orders/migrations"
)

const usage = `usage: migrate up|status

  up      apply what is pending; several may run at once
  status  list the migrations that this release knows; exit status 1 if one is pending

MIGRATE_DATABASE_URL, or else DATABASE_URL, is the database, as the owner of the schema.`

func main() { process.Main("orders-migrate", run) }

func run(ctx context.Context, lookup config.Lookup, log *slog.Logger) error {
	commands := map[string]func(context.Context, *pgxpool.Pool, *slog.Logger) error{"up": up, "status": status}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		return errors.New(usage) //nolint:staticcheck // ST1005: a page for a person, not part of a message
	}
	c, err := config.LoadMigrate(lookup)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	pool, err := postgres.Open(limited, c.Database, "orders-migrate", noop.NewTracerProvider())
	if err == nil {
		defer pool.Close()
		err = commands[os.Args[1]](limited, pool, log)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("stopped by a signal; the next up goes on from there")
	case limited.Err() != nil:
		return fmt.Errorf("MIGRATE_TIMEOUT: not done within %s: %w", c.Timeout, err)
	default:
		return err
	}
}

// up tries again while others hold what a migration needs, so that it never holds them up for longer than
// DB_LOCK_TIMEOUT at a time.
func up(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	for {
		err := migrations.Up(ctx, pool)
		if !postgres.Blocked(err) {
			return err
		}
		log.WarnContext(ctx, "the migration waits for others and is tried again", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

func status(ctx context.Context, pool *pgxpool.Pool, _ *slog.Logger) error {
	list, err := migrations.Status(ctx, pool)
	if err != nil {
		return err
	}
	return show(os.Stdout, list)
}

// show prints a line for each migration; it is an error that one is pending, for scripts.
func show(w io.Writer, list []migrations.State) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	pending := 0
	for _, s := range list {
		when := "pending"
		if s.Applied.IsZero() {
			pending++
		} else {
			when = s.Applied.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\n", s.Version, s.Name, when)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("show: %w", err)
	}
	if pending > 0 {
		return fmt.Errorf("%d migrations are pending", pending)
	}
	return nil
}
