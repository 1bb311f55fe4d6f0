package e2e

import (
	"testing"

	"example.com/orders/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
