// Package postgres runs a real PostgreSQL server as a child process: for `make run`, for `make demo` and for tests,
// never for production.
//
// It finds an installation (or obtains one, see [FindBinDir]), makes a cluster, starts the server on 127.0.0.1 and
// takes it down again. The server never outlives its parent, however that one ends: a watchdog holds a pipe from the
// parent and shuts the server down as soon as the pipe closes.
//
// As root, for PostgreSQL refuses to run as root, the server runs as an unprivileged user: the owner of existing data,
// else postgres, else nobody.
package postgres
