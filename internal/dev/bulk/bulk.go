// Package bulk loads a database with many finished orders: copies of orders that the service itself has placed and
// charged, so that whatever a release stores of an order is there, and replays of the copies' keys are real. It is for
// benchmarks and for tests of plans.
package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// chunk is how many copies one transaction loads.
const chunk = 250_000

// Template is an order to copy. Its charge is done, and its job still there.
type Template struct{ Actor, Key, OrderID string }

// Rows says what to load.
type Rows struct {
	Tenant string
	Orders int
	// Expired is keys alone, whose time is over. They are numbered from ExpiredFrom.
	Expired, ExpiredFrom int
}

// Key is the client key of the copy with a number from 0. It belongs to the actor of template n modulo their number.
func Key(n int) string { return fmt.Sprintf("copy-%d", n) }

// OrderID is the id of the copy with a number from 0.
func OrderID(n int) string {
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", (firstID+n)>>16, (firstID+n)&0xffff, n)
}

// firstID makes ids of version 7 that sort by number, before those of today.
const firstID = 1_500_000_000_000

// orderID is OrderID in SQL, of the number i.
const orderID = `(lpad(to_hex(1500000000000 + i), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid`

// source is the rows of one table that are copied.
type source struct {
	table string
	match string            // finds the rows t of a template n
	own   map[string]string // the SQL of the columns that a copy i has of its own
}

func orders() []source {
	return []source{
		keys(`'copy-' || i`, `now() + interval '72 hours' - i % 250000 * interval '1 second'`),
		{"orders", `t.tenant_id = $2 AND t.id = n.order_id`, map[string]string{"id": orderID}},
		{"order_lines", `t.tenant_id = $2 AND t.order_id = n.order_id`, map[string]string{"order_id": orderID}},
		{"payments", `t.tenant_id = $2 AND t.order_id = n.order_id`, map[string]string{"order_id": orderID}},
		{"river_job", `t.state = 'completed' AND t.args->>'tenant_id' = $2 AND t.args->>'order_id' = n.order_id::text`,
			map[string]string{
				"id": `nextval('river_job_id_seq')`, "args": `jsonb_set(t.args, '{order_id}', to_jsonb(` + orderID + `::text))`,
			}},
	}
}

// keys spreads the ends of the keys.
func keys(key, expires string) source {
	return source{
		"idempotency_keys", `t.tenant_id = $2 AND t.actor_id = n.actor AND t.operation = 'place-order' AND t.key = n.key`,
		map[string]string{"key": key, "expires_at": expires, "created_at": `(` + expires + `) - interval '72 hours'`},
	}
}

// withoutForeignKeys keeps them from being checked row by row, where the user may say so.
const withoutForeignKeys = `
SELECT set_config('session_replication_role', 'replica', true) WHERE current_setting('is_superuser') = 'on'`

// Load makes copies: copy i is one of template i modulo their number. It is faster for a superuser, for whom foreign keys
// are not checked. progress is told of every few hundred thousand.
func Load(ctx context.Context, conn *pgx.Conn, templates []Template, r Rows, progress func(loaded int)) error {
	if r.Orders > 0 {
		if err := loadAll(ctx, conn, templates, r.Tenant, orders(), 0, r.Orders, progress); err != nil {
			return fmt.Errorf("load orders: %w", err)
		}
	}
	if r.Expired > 0 {
		expired := keys(`'expired-' || i`, `now() - i % 3600 * interval '1 second'`)
		err := loadAll(ctx, conn, templates, r.Tenant, []source{expired}, r.ExpiredFrom, r.Expired, progress)
		if err != nil {
			return fmt.Errorf("load expired keys: %w", err)
		}
	}
	return nil
}

func loadAll(
	ctx context.Context, conn *pgx.Conn, templates []Template, tenant string, sources []source, first, count int,
	progress func(int),
) error {
	for _, s := range sources {
		if err := s.prepare(ctx, conn, templates, tenant); err != nil {
			return err
		}
	}
	for from := first; from < first+count; from += chunk {
		to := min(from+chunk, first+count) - 1
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, withoutForeignKeys); err != nil {
				return err
			}
			for _, s := range sources {
				if err := s.copy(ctx, tx, len(templates), from, to); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		progress(to + 1 - first)
	}
	return nil
}

// prepare collects the rows to copy in a temporary table, with the number of their template.
func (s source) prepare(ctx context.Context, conn *pgx.Conn, templates []Template, tenant string) error {
	if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS pg_temp.copied_`+s.table); err != nil {
		return fmt.Errorf("%s: %w", s.table, err)
	}
	list, err := json.Marshal(numbered(templates))
	if err != nil {
		return fmt.Errorf("%s: %w", s.table, err)
	}
	tag, err := conn.Exec(ctx, `
		CREATE TEMP TABLE copied_`+s.table+` AS
		SELECT n.template_no, t.* FROM jsonb_to_recordset($1) AS n (template_no int, actor text, key text, order_id uuid)
		JOIN `+s.table+` t ON `+s.match, pgx.QueryExecModeSimpleProtocol, string(list), tenant)
	if err == nil && tag.RowsAffected() < int64(len(templates)) {
		err = fmt.Errorf("%d templates have %d rows", len(templates), tag.RowsAffected())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.table, err)
	}
	return nil
}

func numbered(templates []Template) []map[string]any {
	list := make([]map[string]any, len(templates))
	for i, t := range templates {
		list[i] = map[string]any{"template_no": i, "actor": t.Actor, "key": t.Key, "order_id": t.OrderID}
	}
	return list
}

func (s source) copy(ctx context.Context, tx pgx.Tx, templates, from, to int) error {
	rows, _ := tx.Query(ctx, `
		SELECT attname::text FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, s.table)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("columns of %s: %w", s.table, err)
	}
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = cmp.Or(s.own[c], "t."+c)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO `+s.table+` (`+strings.Join(columns, ", ")+`)
		SELECT `+strings.Join(values, ", ")+`
		FROM generate_series($1::bigint, $2::bigint) i JOIN copied_`+s.table+` t ON t.template_no = i % $3::int`,
		from, to, templates)
	if err != nil {
		return fmt.Errorf("%s: %w", s.table, err)
	}
	return nil
}
