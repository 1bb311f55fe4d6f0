package postgres

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// removeStalePID removes postmaster.pid if the server that it names is gone, and tells whether it did. PostgreSQL does
// so itself except when an unrelated process of the same user has got the old number since, as happens in containers.
// We hold the lock, so the file is not of a run of ours; a server of ours would also listen where the file says.
func (s *storage) removeStalePID() bool {
	path := filepath.Join(s.data(), "postmaster.pid")
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	// By line: number, directory, start time, port, socket directory, listen address.
	lines := strings.Split(string(b), "\n")
	if len(lines) < 6 || lines[5] != loopback {
		return false
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(loopback, lines[3]))
	if err == nil {
		conn.Close()
		return false
	}
	return os.Remove(path) == nil
}
