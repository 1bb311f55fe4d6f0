package postgres

import (
	"testing"

	"example.com/orders/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
