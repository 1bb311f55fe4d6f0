package lab

import (
	"strings"

	"example.com/orders/internal/dev/spans"
)

// statements names the statements of the service that a reader should recognise, by a part of their text. The first that
// fits counts.
var statements = []struct{ part, name string }{
	{"pg_try_advisory_xact_lock", "claim: take the turn of the key"},
	{"insert into idempotency_keys", "claim: store the key with its answer"},
	{"from idempotency_keys", "claim: read the key"},
	{"insert into river_job", "enqueue a job"},
	{"pg_notify", "wake the worker"},
	{"begin", "begin"},
	{"commit", "commit"},
	{"rollback", "rollback"},
	{"select now()", "read the clock"},
}

// statementName is what a statement does.
func statementName(s spans.Span) string {
	text := queryText(s)
	words := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if words == "" {
		return s.Name
	}
	for _, known := range statements {
		if strings.HasPrefix(words, known.part) || len(known.part) > 10 && strings.Contains(words, known.part) {
			return known.name
		}
	}
	return verb(words)
}

func queryText(s spans.Span) string { return strings.TrimSpace(s.Attributes["db.query.text"]) }

// verb is a statement's verb and its table, such as "update orders".
func verb(words string) string {
	words = strings.TrimPrefix(words, "with changed as (")
	fields := strings.Fields(words)
	for i, word := range fields[:len(fields)-1] {
		switch word {
		case "into", "from", "update":
			table := strings.Trim(fields[i+1], "(,);")
			if table == "" { // a subquery
				continue
			}
			if strings.Contains(words, "for update") || strings.Contains(words, "for no key update") {
				return "lock " + table
			}
			if word == "update" {
				return "update " + table
			}
			return fields[0] + " " + table
		}
	}
	return fields[0]
}
