package main

import (
	"testing"

	"example.com/orders/internal/pgtest"
	"example.com/orders/internal/testkit"
)

func TestMain(m *testing.M) { pgtest.Main(m, testkit.RemoveBinaries) }
