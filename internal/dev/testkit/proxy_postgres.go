package testkit

import (
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
)

// CommitFault is what a Proxy does to one COMMIT.
type CommitFault int

// The faults.
const (
	LoseCommit CommitFault = iota // it never reaches the server, what was sent before it does; both sides are cut
	LoseReply                     // the server carries it out; then both sides are cut
	HoldReply                     // the server carries it out; its reply waits until Release
)

// Commit is one COMMIT on its way through a Proxy.
type Commit struct {
	Reached chan struct{} // closed once the fault has happened: lost, or carried out and its reply held or lost
	fault   CommitFault
	release chan struct{}
}

// Release lets a held reply pass.
func (c *Commit) Release() { close(c.release) }

// watchedSQL is what a Proxy does to COMMITs, and the statements that have passed it.
type watchedSQL struct {
	commit atomic.Pointer[Commit] // the next one
	noting sync.Mutex
	sent   map[string][]flight // by application_name; nil: they are not recorded
}

// flight is the statements that were sent together: until Sync, or one simple query.
type flight struct {
	statements []string
	over       bool
}

// OnNextCommit arms a fault for the next COMMIT of any connection. Reads commit too.
func (w *watchedSQL) OnNextCommit(fault CommitFault) *Commit {
	c := &Commit{Reached: make(chan struct{}), fault: fault, release: make(chan struct{})}
	w.commit.Store(c)
	return c
}

// Record begins a new record of the statements that pass.
func (w *watchedSQL) Record() {
	w.noting.Lock()
	defer w.noting.Unlock()
	w.sent = map[string][]flight{}
}

// Statements is what the sessions of an application_name have executed since Record, in the order in which it was sent.
func (w *watchedSQL) Statements(application string) []string {
	return slices.Concat(w.Flights(application)...)
}

// Flights is the same statements by the flight that they were sent in. To prepare statements takes a flight of its own,
// which is not counted.
func (w *watchedSQL) Flights(application string) (all [][]string) {
	w.noting.Lock()
	defer w.noting.Unlock()
	for _, f := range w.sent[application] {
		all = append(all, slices.Clone(f.statements))
	}
	return all
}

// note records a statement, or with none the end of a flight. A simple query is a flight of its own.
func (w *watchedSQL) note(application, sql string, ends bool) {
	w.noting.Lock()
	defer w.noting.Unlock()
	if w.sent == nil {
		return
	}
	all := w.sent[application]
	if last := len(all) - 1; sql != "" && (last < 0 || all[last].over) {
		w.sent[application] = append(all, flight{[]string{sql}, ends})
	} else if last >= 0 {
		if sql != "" {
			all[last].statements = append(all[last].statements, sql)
		}
		all[last].over = all[last].over || ends
	}
}

// session is a connection to PostgreSQL. To its client the proxy is the server, and to the server it is a client.
type session struct {
	*connection

	client      *pgproto3.Backend
	server      *pgproto3.Frontend
	application string
	prepared    map[string]string // statements by their names
	committing  chan *Commit      // on its way to the server or back
}

func relayPostgres(c *connection) {
	s := &session{
		connection: c, client: pgproto3.NewBackend(c.client, c.client), server: pgproto3.NewFrontend(c, c),
		prepared: map[string]string{}, committing: make(chan *Commit, 1),
	}
	if s.start() {
		c.both(s.toServer, s.toClient)
	}
}

func (s *session) send(m pgproto3.FrontendMessage) bool {
	s.server.Send(m)
	return s.server.Flush() == nil
}

func (s *session) answer(m pgproto3.BackendMessage) bool {
	s.client.Send(m)
	return s.client.Flush() == nil
}

// start passes on the start of a session, in which client and server speak in turn, up to the first ReadyForQuery.
func (s *session) start() bool {
	first, err := s.client.ReceiveStartupMessage()
	if err != nil || !s.send(first) {
		return false
	}
	startup, ok := first.(*pgproto3.StartupMessage)
	if !ok { // a request to cancel: the server carries it out and closes the connection
		_, _ = io.Copy(io.Discard, s.connection)
		return false
	}
	s.application = startup.Parameters["application_name"]
	for {
		m, err := s.server.Receive()
		if err != nil || !s.answer(m) {
			return false
		}
		switch m.(type) {
		case *pgproto3.ReadyForQuery:
			return true
		case *pgproto3.AuthenticationCleartextPassword, *pgproto3.AuthenticationMD5Password,
			*pgproto3.AuthenticationSASL, *pgproto3.AuthenticationSASLContinue:
			if s.client.SetAuthType(s.server.GetAuthType()) != nil {
				return false
			}
			if m, err := s.client.Receive(); err != nil || !s.send(m) {
				return false
			}
		}
	}
}

func (s *session) toServer() {
	for {
		m, err := s.client.Receive()
		if err != nil {
			return
		}
		if sql := s.executed(m); strings.EqualFold(sql, "commit") {
			if c := s.proxy.commit.Swap(nil); c != nil {
				if c.fault == LoseCommit {
					s.cut()
					close(c.Reached)
					return
				}
				s.committing <- c
			}
		}
		if !s.send(m) {
			return
		}
	}
}

// executed notes and returns the statement that a message executes: a simple query, or the Bind of a statement that was
// prepared on the same connection.
func (s *session) executed(message pgproto3.FrontendMessage) (sql string) {
	switch m := message.(type) {
	case *pgproto3.Parse:
		s.prepared[m.Name] = m.Query
	case *pgproto3.Bind:
		sql = s.prepared[m.PreparedStatement]
		s.proxy.note(s.application, sql, false)
	case *pgproto3.Query:
		sql = m.String
		s.proxy.note(s.application, sql, true)
	case *pgproto3.Sync:
		s.proxy.note(s.application, "", true)
	}
	return sql
}

func (s *session) toClient() {
	for {
		m, err := s.server.Receive()
		if err != nil {
			return
		}
		if done, ok := m.(*pgproto3.CommandComplete); ok && string(done.CommandTag) == "COMMIT" && !s.committed() {
			return
		}
		if !s.answer(m) {
			return
		}
	}
}

// committed tells whether the reply of a COMMIT may pass, once that is known.
func (s *session) committed() bool {
	select {
	case c := <-s.committing:
		close(c.Reached)
		if c.fault == LoseReply {
			return false
		}
		select {
		case <-c.release:
		case <-s.over:
		}
	default:
	}
	return true
}
