package testkit

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders/internal/dev/postgres"
)

// Proxy stands between one server on this machine and its clients. It passes every message on, and cuts, delays or loses
// what it is told to, as networks do. It speaks HTTP/1.1 and, for an address that begins with postgres, PostgreSQL's
// protocol without TLS. Its methods may be called from several goroutines.
type Proxy struct {
	URL string // where clients find the server; stays the same

	server, address string // host and port of the server, and of the proxy
	relay           func(*connection)
	running         sync.WaitGroup
	delay           atomic.Int64 // nanoseconds
	silent          atomic.Bool
	lossyHTTP
	watchedSQL

	mu       sync.Mutex
	listener net.Listener // nil while the proxy is cut
	open     map[*connection]bool
}

// StartProxy starts a Proxy that is closed when the test ends.
func StartProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	p, err := NewProxy(address)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// NewProxy starts a Proxy of the server at an address, on a free port of the loopback interface.
func NewProxy(address string) (*Proxy, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("address of the server: %w", err)
	}
	port, err := postgres.FreePort()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{server: u.Host, address: fmt.Sprintf("127.0.0.1:%d", port), relay: relayHTTP, open: map[*connection]bool{}}
	if u.Scheme == "postgres" || u.Scheme == "postgresql" {
		p.relay = relayPostgres
	}
	if err := p.Mend(); err != nil {
		return nil, err
	}
	u.Host = p.address
	p.URL = u.String()
	return p, nil
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.Cut()
	p.running.Wait()
}

// Cut ends all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.open {
		c.cut()
	}
}

// Mend accepts connections again after Cut. It fails where another process has taken the port.
func (p *Proxy) Mend() error {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(listener, client) })
		}
	})
	return nil
}

// Slow delays everything that the server sends.
func (p *Proxy) Slow(milliseconds int) { p.delay.Store(int64(milliseconds) * int64(time.Millisecond)) }

// Silence drops everything that the server sends, while connections stay open: they are half open.
func (p *Proxy) Silence() { p.silent.Store(true) }

// Recover undoes Slow and Silence. A connection of which something was dropped is cut.
func (p *Proxy) Recover() {
	p.delay.Store(0)
	p.silent.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		if c.dropped.Load() {
			c.cut()
		}
	}
}

func (p *Proxy) serve(listener net.Listener, client net.Conn) {
	server, err := net.DialTimeout("tcp", p.server, Wait)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{Conn: server, proxy: p, client: client, over: make(chan struct{})}
	defer c.cut()
	p.mu.Lock()
	cut := p.listener != listener
	p.open[c] = true
	p.mu.Unlock()
	if !cut {
		p.relay(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// connection is one connection to the server, and that of the client which it belongs to.
type connection struct {
	net.Conn

	proxy   *Proxy
	client  net.Conn
	dropped atomic.Bool   // something that the server sent
	over    chan struct{} // closed when it is cut
	once    sync.Once
}

// cut ends both sides.
func (c *connection) cut() {
	c.once.Do(func() {
		close(c.over)
		_ = c.client.Close()
		_ = c.Close()
	})
}

// both passes messages on in both directions until one of them ends, which cuts the connection.
func (c *connection) both(toServer, toClient func()) {
	var other sync.WaitGroup
	other.Go(func() { defer c.cut(); toServer() })
	toClient()
	c.cut()
	other.Wait()
}

// Read reads from the server, with what the proxy does to its answers.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.proxy.silent.Load() {
		c.dropped.Store(true)
		n, err = c.Conn.Read(b)
	}
	if c.proxy.silent.Load() { // nor does the client learn that the server has closed the connection
		c.dropped.Store(true)
		<-c.over
	}
	if delay := c.proxy.delay.Load(); delay > 0 {
		select {
		case <-time.After(time.Duration(delay)):
		case <-c.over:
		}
	}
	return n, err
}
