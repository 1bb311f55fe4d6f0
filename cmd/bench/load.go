package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// requestTimeout bounds one request; the API answers or gives up sooner.
const requestTimeout = time.Minute

// request is one request as it goes over the wire, and what its answer must be.
type request struct {
	raw    []byte
	status int
	answer func(answer) // called by the client that sent the request; nil: the answer is not read further
}

type answer struct {
	status int
	header http.Header
	body   []byte // valid until the next request of the same client
}

// client is one keep-alive connection. It is simpler than net/http's client, because the load generator takes its CPU
// from the same cores as the service.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	body bytes.Buffer
}

func dial(ctx context.Context, host string) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("connect to the API: %w", err)
	}
	return &client{conn: conn, r: bufio.NewReader(conn)}, nil
}

func (c *client) do(r request) error {
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return fmt.Errorf("deadline: %w", err)
	}
	if _, err := c.conn.Write(r.raw); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	response, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	defer response.Body.Close()
	c.body.Reset()
	if _, err := c.body.ReadFrom(response.Body); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if response.StatusCode != r.status {
		return fmt.Errorf("answered %d, not %d: %s", response.StatusCode, r.status, c.body.Bytes())
	}
	if r.answer != nil {
		r.answer(answer{response.StatusCode, response.Header, c.body.Bytes()})
	}
	return nil
}

// source makes the next request of a client; clients call it at the same time, each with its own number.
type source func(client int) request

// sent is the result of a load.
type sent struct {
	took  time.Duration
	times []time.Duration // of each request, ascending
}

func (s sent) perSecond() float64 { return float64(len(s.times)) / s.took.Seconds() }

// percentile is the nearest-rank percentile in milliseconds; 0 without requests.
func (s sent) percentile(p float64) float64 {
	if len(s.times) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(s.times))+0.999999) - 1
	return milliseconds(s.times[min(max(rank, 0), len(s.times)-1)])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// load runs clients for a time. Each sends one request after another on its own connection. An unexpected answer is an
// error.
func (b *bench) load(ctx context.Context, clients int, length time.Duration, next source) (sent, error) {
	open := make([]*client, clients)
	for i := range open {
		c, err := dial(ctx, b.api.host)
		if err != nil {
			return sent{}, err
		}
		defer c.conn.Close()
		open[i] = c
	}
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var running sync.WaitGroup
	began := time.Now()
	for i, c := range open {
		running.Go(func() { times[i], errs[i] = c.repeat(ctx, began.Add(length), i, next) })
	}
	running.Wait()
	all := sent{took: time.Since(began), times: slices.Concat(times...)}
	slices.Sort(all.times)
	return all, errors.Join(errs...)
}

func (c *client) repeat(ctx context.Context, until time.Time, number int, next source) (times []time.Duration, err error) {
	for from := time.Now(); from.Before(until) && ctx.Err() == nil; {
		if err := c.do(next(number)); err != nil {
			return times, err
		}
		now := time.Now()
		times = append(times, now.Sub(from))
		from = now
	}
	return times, ctx.Err()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
