package testkit

import (
	"bytes"
	bigendian "encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// CommitFault is what a PGProxy does to one COMMIT.
type CommitFault int

// The faults.
const (
	LoseCommit CommitFault = iota // it never reaches the server, what was sent before it does; both sides are cut
	LoseReply                     // the server carries it out; then both sides are cut
	HoldReply                     // the server carries it out; its reply waits until Release
)

// Commit is one COMMIT on its way through a PGProxy.
type Commit struct {
	Reached chan struct{} // closed once the fault has happened: lost, or carried out and its reply held or lost
	fault   CommitFault
	release chan struct{}
}

// Release lets a held reply pass.
func (c *Commit) Release() { close(c.release) }

// PGProxy stands between the API and PostgreSQL and passes the protocol on message by message, so that a test can
// choose the one moment at which a COMMIT is on its way.
type PGProxy struct {
	URL      string
	listener net.Listener
	server   string
	next     atomic.Pointer[Commit]
	mu       sync.Mutex
	open     []net.Conn
	over     chan struct{} // closed when the test ends
	ended    sync.WaitGroup
}

// StartPGProxy starts a proxy before the server of a database. TLS does not pass it: the URL must disable it.
func StartPGProxy(t testing.TB, databaseURL string) *PGProxy {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	p := &PGProxy{server: u.Host, over: make(chan struct{})}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = p.listener.Addr().String()
	p.URL = u.String()
	p.ended.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// OnNextCommit arms a fault for the next COMMIT of any connection. Reads commit too.
func (p *PGProxy) OnNextCommit(fault CommitFault) *Commit {
	c := &Commit{Reached: make(chan struct{}), fault: fault, release: make(chan struct{})}
	p.next.Store(c)
	return c
}

func (p *PGProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.server, Wait)
		if err != nil {
			client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		l := &link{proxy: p, client: client, server: server}
		p.ended.Go(l.toServer)
		p.ended.Go(l.toClient)
	}
}

// keep notes a connection, to be closed when the test ends, or closes it where the test has ended already.
func (p *PGProxy) keep(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.over:
		client.Close()
		server.Close()
		return false
	default:
		p.open = append(p.open, client, server)
		return true
	}
}

// hold waits until the reply may pass, or the test has ended without letting it.
func (p *PGProxy) hold(c *Commit) {
	select {
	case <-c.release:
	case <-p.over:
	}
}

func (p *PGProxy) stop() {
	p.listener.Close()
	p.mu.Lock()
	close(p.over)
	for _, c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.ended.Wait()
}

// link is one connection through the proxy.
type link struct {
	proxy          *PGProxy
	client, server net.Conn
	commit         atomic.Pointer[Commit] // on its way to the server or back
}

func (l *link) cut() {
	l.client.Close()
	l.server.Close()
}

func (l *link) toServer() {
	defer l.cut()
	prepared := map[string]string{}
	// The first message has no type (protocol, "Message Formats").
	for first := true; ; first = false {
		m, err := readMessage(l.client, first)
		if err != nil {
			return
		}
		if sql, ok := executed(prepared, m); !first && ok && strings.EqualFold(sql, "commit") {
			if c := l.proxy.next.Swap(nil); c != nil {
				if c.fault == LoseCommit {
					l.cut()
					close(c.Reached)
					return
				}
				l.commit.Store(c)
			}
		}
		if _, err := l.server.Write(m); err != nil {
			return
		}
	}
}

func (l *link) toClient() {
	defer l.cut()
	for {
		m, err := readMessage(l.server, false)
		if err != nil {
			return
		}
		if isCommitted(m) {
			if c := l.commit.Swap(nil); c != nil {
				close(c.Reached)
				if c.fault == LoseReply {
					return
				}
				l.proxy.hold(c)
			}
		}
		if _, err := l.client.Write(m); err != nil {
			return
		}
	}
}

// isCommitted tells whether the message says that a COMMIT has been carried out.
func isCommitted(m []byte) bool { return m[0] == 'C' && bytes.Equal(m[5:], []byte("COMMIT\x00")) }

// readMessage reads one message whole: a type, except for the first of a client, and a length that includes itself.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := bigendian.BigEndian.Uint32(head[len(head)-4:])
	m := make([]byte, len(head)+int(length)-4)
	copy(m, head)
	_, err := io.ReadFull(r, m[len(head):])
	return m, err
}
