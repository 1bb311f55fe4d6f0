package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statement is PostgreSQL's time for one statement, from pg_stat_statements.
type statement struct {
	SQL   string  `json:"sql"`
	Calls int64   `json:"calls"`
	Mean  float64 `json:"mean_ms"`
	Share float64 `json:"share"` // of the time of all statements
}

// reportStatements runs place-order once more and reads the time of each of its statements.
func (b *bench) reportStatements(ctx context.Context, r *report) error {
	if _, err := b.db.Exec(ctx, `SELECT pg_stat_statements_reset()`); err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	if _, err := b.load(ctx, typical, b.writing(), b.placing(1, newShelf(typical))); err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	rows, _ := b.db.Query(ctx, `
		SELECT regexp_replace(query, '\s+', ' ', 'g'), calls, mean_exec_time, total_exec_time / sum(total_exec_time) OVER ()
		FROM pg_stat_statements JOIN pg_roles r ON r.oid = userid WHERE rolname = 'orders_service'
		ORDER BY total_exec_time DESC LIMIT 20`)
	var err error
	r.Statements, err = pgx.CollectRows(rows, pgx.RowToStructByPos[statement])
	if err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	return nil
}

func (r *report) statementLines() string {
	var s strings.Builder
	for _, st := range r.Statements {
		sql := st.SQL
		if len(sql) > 80 {
			sql = sql[:80] + "…"
		}
		fmt.Fprintf(&s, "- %4.1f %%, %.3f ms each, %d calls: `%s`\n", st.Share*100, st.Mean, st.Calls, sql)
	}
	return s.String()
}
