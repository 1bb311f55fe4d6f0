package postgres

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	loopback  = "127.0.0.1"
	portFrom  = 15000
	portTo    = 32000
	portTries = 100
)

// FreePort is a TCP port of 127.0.0.1 that is free now, and that a server can take again after an outage. It is below the
// ports that systems hand to outgoing connections (from 32768 on Linux, 49152 on macOS): during an outage test such a
// connection could take the port of the server that is down, and a client that keeps dialling it could even end up connected
// to itself.
func FreePort() (int, error) {
	for range portTries {
		port := portFrom + rand.IntN(portTo-portFrom)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("found no free port on " + loopback)
}
