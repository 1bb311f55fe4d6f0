package testkit_test

import (
	"testing"

	"example.com/orders/internal/dev/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
