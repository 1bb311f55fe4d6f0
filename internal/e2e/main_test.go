package e2e

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"example.com/orders/internal/pgtest"
	"example.com/orders/internal/testkit"
)

func TestMain(m *testing.M) {
	// These tests wait more than they work. -parallel on the command line, which is read later, still decides.
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	pgtest.Main(m, testkit.RemoveBinaries)
}
