package hostile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
)

// request is what goes over the wire, byte for byte. No HTTP client would send most of it.
type request struct {
	method, target string
	header         []field
	body           []byte
	signed         bool // the provider's signature over the body is added when it is sent
}

type field struct{ name, value string }

// clone copies a request, so that a fault in one is none in the other.
func (q request) clone() request {
	q.header, q.body = slices.Clone(q.header), bytes.Clone(q.body)
	return q
}

// drop removes every line of a header.
func (q *request) drop(name string) {
	q.header = slices.DeleteFunc(q.header, func(f field) bool { return strings.EqualFold(f.name, name) })
}

// set replaces the lines of a header by one line for each value.
func (q *request) set(name string, values ...string) {
	q.drop(name)
	for _, value := range values {
		q.header = append(q.header, field{name, value})
	}
}

func (q *request) get(name string) string {
	for _, f := range q.header {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// seal adds what is computed over the rest: the signature and the length.
func (q *request) seal() {
	if q.signed {
		q.set("Stripe-Signature", webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
			Payload: q.body, Secret: sandbox.DefaultEventSecret, Timestamp: time.Now(),
		}).Header)
	}
	if len(q.body) > 0 || q.method != http.MethodGet && q.method != http.MethodHead {
		q.set("Content-Length", fmt.Sprint(len(q.body)))
	}
}

// wire is the request as it is sent.
func (q request) wire() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: orders.test\r\n", q.method, q.target)
	for _, f := range q.header {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(q.body)
	return b.Bytes()
}

// mostShown is how much of a body a curl line shows, in bytes.
const mostShown = 2000

// curl is a line for a shell that sends the request again. The signature in it is valid for some minutes.
func (q request) curl(base string) string {
	line := []string{"curl -i --path-as-is -X", quote(q.method), quote(base + q.target)}
	for _, f := range q.header {
		if !strings.EqualFold(f.name, "Content-Length") {
			line = append(line, "-H", quote(f.name+": "+f.value))
		}
	}
	if len(q.body) > mostShown {
		return strings.Join(append(line, fmt.Sprintf("--data-binary %s # and %d bytes more", quote(string(q.body[:mostShown])),
			len(q.body)-mostShown)), " ")
	}
	if len(q.body) > 0 {
		line = append(line, "--data-binary", quote(string(q.body)))
	}
	return strings.Join(line, " ")
}

// quote quotes any bytes for bash.
func quote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// line is one connection to the service, opened again where the service has closed it.
type line struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

// answer is what came back, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// exchange sends a request and reads its answer. A connection that the service closed while it was idle is opened again.
func (l *line) exchange(q request) (answer, error) {
	fresh := l.conn == nil
	a, err := l.try(q)
	if err != nil && !fresh && errors.Is(err, io.EOF) {
		a, err = l.try(q)
	}
	return a, err
}

func (l *line) try(q request) (a answer, err error) {
	if l.conn == nil {
		if l.conn, err = net.DialTimeout("tcp", l.address, testkit.Wait); err != nil {
			return a, err
		}
		l.reader = bufio.NewReader(l.conn)
	}
	var response *http.Response
	if err = l.conn.SetDeadline(time.Now().Add(testkit.Wait)); err == nil {
		// An answer may come before all of the request has been taken, so a failed write alone decides nothing.
		_, _ = l.conn.Write(q.wire())
		response, err = readResponse(l.reader, q.method)
	}
	if err == nil {
		a = answer{status: response.StatusCode, header: response.Header}
		a.body, err = io.ReadAll(response.Body)
	}
	if err != nil || response.Close {
		_ = l.conn.Close()
		l.conn = nil
	}
	return a, err
}

// readResponse reads the final answer, behind those of 1xx.
func readResponse(r *bufio.Reader, method string) (*http.Response, error) {
	for {
		response, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil || response.StatusCode >= http.StatusOK {
			return response, err
		}
	}
}
