package testkit

import (
	"bytes"
	"net"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wire stands between the service and PostgreSQL and notes each statement that is executed, as it goes over the wire:
// whatever a process sends, by whichever way, is seen.
type Wire struct {
	URL      string
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
	sent map[string][]flight // by application_name
}

// flight is the statements that were sent together: until Sync, or one simple query.
type flight struct {
	statements []string
	over       bool
}

// StartWire starts a Wire before the server of a database. TLS does not pass it: the URL must disable it.
func StartWire(t testing.TB, databaseURL string) *Wire {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	w := &Wire{server: u.Host, sent: map[string][]flight{}}
	w.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = w.listener.Addr().String()
	w.URL = u.String()
	w.running.Go(w.accept)
	t.Cleanup(w.stop)
	return w
}

// Statements is what a process has executed since Forget, in the order in which it was sent.
func (w *Wire) Statements(application string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, f := range w.sent[application] {
		all = append(all, f.statements...)
	}
	return all
}

// Flights is the same statements by the flight that they were sent in. To prepare statements takes a flight of its own,
// which is not counted.
func (w *Wire) Flights(application string) (all [][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.sent[application] {
		all = append(all, slices.Clone(f.statements))
	}
	return all
}

// Forget forgets the statements so far.
func (w *Wire) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sent)
}

func (w *Wire) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.DialTimeout("tcp", w.server, Wait)
		if err != nil {
			from.Close()
			continue
		}
		w.mu.Lock()
		w.open = append(w.open, from, to)
		w.mu.Unlock()
		w.running.Go(func() { w.pass(from, to) })
		w.running.Go(func() { back(to, from) })
	}
}

func (w *Wire) stop() {
	w.listener.Close()
	w.mu.Lock()
	for _, c := range w.open {
		c.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}

func back(from, to net.Conn) {
	defer to.Close()
	for {
		m, err := readMessage(from, false)
		if err != nil {
			return
		}
		if _, err := to.Write(m); err != nil {
			return
		}
	}
}

var applicationName = regexp.MustCompile(`application_name\x00([^\x00]*)\x00`)

// pass hands on what the client sends and notes the statement of each Bind and each simple query (protocol, "Message
// Formats"). The first message has no type.
func (w *Wire) pass(from, to net.Conn) {
	defer to.Close()
	application := ""
	prepared := map[string]string{}
	for first := true; ; first = false {
		m, err := readMessage(from, first)
		if err != nil {
			return
		}
		if first {
			if name := applicationName.FindSubmatch(m); name != nil {
				application = string(name[1])
			}
		} else {
			w.note(application, prepared, m)
		}
		if _, err := to.Write(m); err != nil {
			return
		}
	}
}

func (w *Wire) note(application string, prepared map[string]string, m []byte) {
	sql, ok := executed(prepared, m)
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.sent[application]
	switch last := len(all) - 1; {
	case ok && (last < 0 || all[last].over):
		w.sent[application] = append(all, flight{[]string{sql}, m[0] == 'Q'})
	case ok:
		all[last].statements = append(all[last].statements, sql)
	case m[0] == 'S' && last >= 0: // Sync
		all[last].over = true
	}
}

// executed tells which statement a client's message executes: a simple query, or the Bind of a statement that was prepared
// on the same connection. prepared keeps the statements of that connection by name.
func executed(prepared map[string]string, m []byte) (sql string, ok bool) {
	texts := bytes.SplitN(m[5:], []byte{0}, 3)
	switch m[0] {
	case 'P': // Parse: name, statement
		prepared[string(texts[0])] = string(texts[1])
	case 'B': // Bind: portal, name
		return prepared[string(texts[1])], true
	case 'Q':
		return string(texts[0]), true
	}
	return "", false
}
