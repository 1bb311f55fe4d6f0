package process

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"example.com/orders/internal/infra/config"
)

// healthTimeout is longer than /readyz takes to give up on the database.
const healthTimeout = 5 * time.Second

// Health is the health endpoint of a process: the variable that holds its address, the default address, and the path.
type Health struct{ Variable, Default, Path string }

// Ready is the health endpoint of the API and of the worker.
func Ready() Health { return Health{Variable: "OPS_ADDR", Default: "127.0.0.1:8081", Path: "/readyz"} }

// ask requests the health endpoint. It returns nil if the process is healthy.
func (h Health) ask(ctx context.Context, lookup config.Lookup, _ *slog.Logger) error {
	url, err := h.url(lookup)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Variable, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("not healthy: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy: %s answers %s", url, response.Status)
	}
	return nil
}

// url uses the loopback address if the process listens on all addresses.
func (h Health) url(lookup config.Lookup) (string, error) {
	addr, _ := lookup(h.Variable)
	if addr == "" {
		addr = h.Default
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%s must be host:port; it is %q", h.Variable, addr)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + h.Path, nil
}
