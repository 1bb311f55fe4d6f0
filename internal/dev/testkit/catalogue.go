package testkit

import (
	"time"

	"github.com/stretchr/testify/require"
)

// Product adds a product of tenant default with a price in EUR cents and units on hand, straight into the tables.
func (s *Service) Product(t TB, sku string, price, onHand int64) {
	t.Helper()
	s.ProductOf(t, "default", sku, price, onHand)
}

// ProductOf adds a product of any tenant.
func (s *Service) ProductOf(t TB, tenant, sku string, price, onHand int64) {
	t.Helper()
	now := time.Now()
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO products VALUES ($1, $2, 'Product ' || $2, $3, 'EUR', true, $4, $4, 1)`, tenant, sku, price, now)
	require.NoError(t, err)
	_, err = s.DB.Exec(t.Context(), `INSERT INTO stock VALUES ($1, $2, $3, $4, 1)`, tenant, sku, onHand, now)
	require.NoError(t, err)
	s.Stocked(t, tenant, sku, onHand)
}

// OnHand is the units on hand of a sku of tenant default.
func (s *Service) OnHand(t TB, sku string) (units int64) {
	t.Helper()
	err := s.DB.QueryRow(bounded(t), `SELECT on_hand FROM stock WHERE tenant_id = 'default' AND sku = $1`, sku).Scan(&units)
	require.NoError(t, err)
	return units
}

// Count counts the rows that a query's FROM clause selects.
func (s *Service) Count(t TB, from string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.DB.QueryRow(bounded(t), `SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}
