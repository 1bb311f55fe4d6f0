// Package lossy is a proxy that loses requests and answers when it is asked to, as networks do unasked. The demo and the
// tests put it between a caller and the service.
package lossy

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// Proxy forwards to one service.
type Proxy struct {
	listener net.Listener
	server   *http.Server
	requests atomic.Int32 // how many are still to be lost
	answers  atomic.Int32
	lost     atomic.Int32 // the status of the last lost answer
}

// Start starts a Proxy of the service at target, on a free port of the loopback interface.
func Start(target string) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("lossy: %w", err)
	}
	p := &Proxy{}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("lossy: %w", err)
	}
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ModifyResponse: p.answer,
		ErrorLog:       silent,
	}
	p.server = &http.Server{Handler: p.request(forward), ErrorLog: silent, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = p.server.Serve(p.listener) }() // ends with Close
	return p, nil
}

// URL is where the proxy answers.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close stops the proxy and cuts what it is forwarding.
func (p *Proxy) Close() error { return p.server.Close() }

// LoseAnswers lets the next n requests through to the service and cuts the connection instead of giving its answer.
func (p *Proxy) LoseAnswers(n int) { p.answers.Store(int32(n)) }

// LoseRequests cuts the connection of the next n requests before the service hears of them.
func (p *Proxy) LoseRequests(n int) { p.requests.Store(int32(n)) }

// Lost is the status of the answer that was lost last, or 0.
func (p *Proxy) Lost() int { return int(p.lost.Load()) }

func (p *Proxy) request(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if take(&p.requests) {
			panic(http.ErrAbortHandler) // ends the connection without an answer
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Proxy) answer(r *http.Response) error {
	if !take(&p.answers) {
		return nil
	}
	p.lost.Store(int32(r.StatusCode))
	_ = r.Body.Close()
	panic(http.ErrAbortHandler)
}

// take counts n down and tells whether there was one to take.
func take(n *atomic.Int32) bool {
	for {
		left := n.Load()
		if left <= 0 {
			return false
		}
		if n.CompareAndSwap(left, left-1) {
			return true
		}
	}
}
