package postgres

import (
	"maps"
	"slices"
	"strconv"
)

// arguments are those of the postgres program. A later setting wins, so the caller's come last.
func (s *Server) arguments() []string {
	args := []string{"-D", s.store.data()}
	for _, set := range []map[string]string{s.network(), s.durability(), s.options.Settings} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			args = append(args, "-c", name+"="+set[name])
		}
	}
	return args
}

// network leaves the Unix-domain socket out: its path may hold some hundred bytes only, less than many a temporary
// directory.
func (s *Server) network() map[string]string {
	set := map[string]string{
		"listen_addresses":        loopback,
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": "",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off", // the log is read from standard error, whatever the installation's default
		"log_destination":         "stderr",
	}
	if n := s.options.MaxConnections; n > 0 {
		set["max_connections"] = strconv.Itoa(n)
	}
	return set
}

func (s *Server) durability() map[string]string {
	if s.options.Durable {
		return nil
	}
	return map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
}
