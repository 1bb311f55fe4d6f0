package testkit

import (
	"bufio"
	"io"
	"net/http"
	"sync/atomic"
)

// lossyHTTP is what a Proxy loses of HTTP.
type lossyHTTP struct {
	requests, answers atomic.Int32 // how many are still to be lost
	lost              atomic.Pointer[Answer]
}

// LoseAnswers lets the next n requests through to the server and cuts the connection instead of passing its answer on.
func (l *lossyHTTP) LoseAnswers(n int) { l.answers.Store(int32(n)) }

// LoseRequests cuts the connection of the next n requests, of which the server gets nothing.
func (l *lossyHTTP) LoseRequests(n int) { l.requests.Store(int32(n)) }

// Lost is the answer that was lost last. Its status is 0 where none was.
func (l *lossyHTTP) Lost() Answer {
	if a := l.lost.Load(); a != nil {
		return *a
	}
	return Answer{}
}

func relayHTTP(c *connection) {
	sent := make(chan *http.Request)
	c.both(func() {
		for from := bufio.NewReader(c.client); ; {
			r, err := http.ReadRequest(from)
			if err != nil || c.proxy.requests.Add(-1) >= 0 {
				return
			}
			select {
			case sent <- r:
			case <-c.over:
				return
			}
			if r.Write(c) != nil {
				return
			}
		}
	}, func() {
		for from := bufio.NewReader(c); ; {
			select {
			case r := <-sent:
				if !c.passAnswer(from, r) {
					return
				}
			case <-c.over:
				return
			}
		}
	})
}

func (c *connection) passAnswer(from *bufio.Reader, to *http.Request) bool {
	response, err := http.ReadResponse(from, to)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if c.proxy.answers.Add(-1) < 0 {
		return response.Write(c.client) == nil
	}
	body, err := io.ReadAll(response.Body)
	if err == nil {
		c.proxy.lost.Store(&Answer{response.StatusCode, response.Header, body})
	}
	return false
}
