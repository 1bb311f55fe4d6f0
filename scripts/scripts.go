// Package scripts holds the one script that a Go program runs too.
package scripts

import _ "embed"

// PostgreSQL is postgres.sh, for bash.
//
//go:embed postgres.sh
var PostgreSQL string
