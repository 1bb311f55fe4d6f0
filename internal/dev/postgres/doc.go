// Package postgres runs a real PostgreSQL server as a child process: for `make run`, for `make demo` and for tests,
// never for production.
//
// It finds an installation, see [FindBinDir], makes a cluster, starts the server on 127.0.0.1 and
// takes it down again. The server never outlives its parent, however that one ends: see package child.
//
// As root, for PostgreSQL refuses to run as root, the server runs as an unprivileged user: the owner of existing data,
// else postgres, else nobody.
package postgres
