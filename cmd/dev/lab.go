package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"example.com/orders/internal/dev/lab"
	devstack "example.com/orders/internal/dev/stack"
)

// startLab serves the lab at LAB_ADDR and returns its address.
func (s *stack) startLab(ctx context.Context) (string, error) {
	addr, ok := s.lookup("LAB_ADDR")
	if !ok {
		addr = "127.0.0.1:8082"
	}
	if !lab.Loopback(addr) {
		return "", fmt.Errorf("LAB_ADDR=%q: the lab is for this machine only", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("LAB_ADDR: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	l, err := lab.New(devstack.ThrowawayOptions{Notes: os.Stderr, Worker: []string{self, "lab-worker"}}, checkout())
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: l.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	s.stops = append(s.stops, func(ctx context.Context) error { _ = server.Shutdown(ctx); return l.Close() })
	return "http://" + listener.Addr().String() + "/lab/", nil
}

// checkout is the folder of the source where this program was started in one, as make run does; else it is empty.
func checkout() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "api", "openapi.yaml")); err != nil {
		return ""
	}
	return dir
}
