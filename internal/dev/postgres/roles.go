package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"example.com/orders/deploy"
)

// Separate makes the service's database, unless there is one, with the roles of deploy/roles.sql, and returns the
// addresses of the role that migrates and of the one that runs the service. Their passwords are new every time.
func (s *Server) Separate(ctx context.Context, database string) (owner, service string, err error) {
	if err := s.createDatabase(ctx, database); err != nil {
		return "", "", fmt.Errorf("make database %s: %w", database, err)
	}
	passwords := map[string]string{"orders_owner": rand.Text(), "orders_service": rand.Text()}
	err = s.as(ctx, database, func(admin *pgx.Conn) error {
		_, err := admin.Exec(ctx, deploy.Roles)
		for role, password := range passwords {
			if err == nil {
				_, err = admin.Exec(ctx, fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, role, password)) // letters and digits
			}
		}
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("make roles: %w", err)
	}
	address := func(role string) string {
		u, _ := url.Parse(s.URL(database)) // made by url.URL
		u.User = url.UserPassword(role, passwords[role])
		return u.String()
	}
	return address("orders_owner"), address("orders_service"), nil
}

func (s *Server) createDatabase(ctx context.Context, name string) error {
	return s.as(ctx, superuser, func(admin *pgx.Conn) error {
		var there bool
		err := admin.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there)
		if err != nil || there {
			return err
		}
		_, err = admin.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize())
		return err
	})
}

// as runs fn as the superuser.
func (s *Server) as(ctx context.Context, database string, fn func(*pgx.Conn) error) error {
	admin, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	return errors.Join(fn(admin), admin.Close(ctx))
}
