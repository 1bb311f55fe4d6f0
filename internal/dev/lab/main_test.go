package lab

import (
	"testing"

	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m, testkit.RemoveBinaries) }
