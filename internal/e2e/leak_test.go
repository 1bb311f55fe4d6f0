package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/orders/internal/boot"
	"example.com/orders/internal/dev/postgres/pgtest"
	"example.com/orders/internal/dev/sandbox"
	"example.com/orders/internal/dev/testkit"
	"example.com/orders/internal/infra/config"
)

// The private values of the story below. Each occurs nowhere else, and has characters that encodings change.
const (
	leakSubject  = "leak|subject/7c1e+zoë"
	leakKey      = "leak-key/7c1e+=%2"
	leakName     = "Léak/Name+7c1e Lovelace"
	leakLine1    = "7c1e Léak+Street/9"
	leakLine2    = "Léak+Floor/7c1e 3"
	leakCity     = "Léak+City/7c1e Ost"
	leakPostal   = "LK7-C1E+/9"
	leakMethod   = "pm_1LeakMethod7c1eZ9"
	leakReason   = "léak reason+7c1e/scratched"
	leakTracking = "LEAK/TRACK+7C1E-77"
	leakAPIKey   = "sk_test_51LeakApiKey7c1eZ9"
	leakSecret   = "whsec_LeakSecret7c1e+/Z9"
	leakPassword = "LeakPassword7c1eZ9QW"
	leakQuery    = "leak-query-7c1eZ9"
	leakMember   = "leak-member-7c1eZ9"
	leakForged   = "leak-forged-token-7c1eZ9"
	leakHolder   = "Léak+Holder/7c1e Babbage" // whom the provider's own bodies name
)

// The places in which the private values are looked for, beside each column of each table.
const (
	apiLog, workerLog                   = "log of the API", "log of the worker"
	apiMetricsPlace, workerMetricsPlace = "metrics of the API", "metrics of the worker"
	spanPlace                           = "spans"
	problemPlace, headerPlace           = "problems", "headers of answers"
	answerPlace                         = "answers to the customer"
	providerPlace                       = "requests to the provider"
	startPlace                          = "errors at start"
)

// leakPlaces is where each private value must be seen, and by that where alone it may be.
func (s *leakStory) leakPlaces() map[string][]string {
	address := func(column string) []string { return []string{answerPlace, "orders." + column} }
	return map[string][]string{
		s.alice.Token:                        nil,
		strings.Split(s.alice.Token, ".")[2]: nil, // its signature
		leakForged:                           nil,
		leakQuery:                            nil,
		leakMember:                           {problemPlace}, // the name of an unknown member, to the caller that sent it
		leakSubject:                          {"idempotency_keys.actor_id", "orders.customer_id"},
		leakKey:                              {"idempotency_keys.key"},
		leakName:                             address("ship_name"),
		leakLine1:                            address("ship_line1"),
		leakLine2:                            address("ship_line2"),
		leakCity:                             address("ship_city"),
		leakPostal:                           address("ship_postal_code"),
		leakMethod:                           {"payments.payment_method", providerPlace},
		leakReason:                           {"refunds.reason"},
		leakTracking:                         {answerPlace, "orders.tracking_number"},
		leakAPIKey:                           {providerPlace},
		leakSecret:                           nil,
		leakPassword:                         nil,
		leakHolder:                           nil,
	}
}

// Ensure no token, client key, address, payment method, reason, API key, event secret or password leaves the places that
// exist for it, whatever goes wrong: not as it is, and not in another encoding or under a hash that a list of values undoes.
// Logs are read at debug level, which production does not write.
func TestLeakNoPrivateValueLeaks(t *testing.T) {
	t.Parallel()
	s := openLeakStory(t)
	slow := s.slowBody()
	s.orders()
	s.refusals()
	s.forgedTokens()
	s.brokenBodies()
	s.payments()
	s.events()
	s.databaseErrors()
	s.panics()
	s.starts()
	slow()
	seen := s.places()
	for value, places := range s.leakPlaces() {
		slices.Sort(places)
		assert.Equal(t, places, whereSeen(seen, value), "where %s is seen", value)
	}
}

// whereSeen is the places whose text has a value in any spelling.
func whereSeen(places map[string]string, value string) (found []string) {
	for place, text := range places {
		if slices.ContainsFunc(spellings(value), func(s string) bool { return strings.Contains(text, s) }) {
			found = append(found, place)
		}
	}
	slices.Sort(found)
	return found
}

// spellings is a value in the encodings that code applies by itself, and the start of its unsalted hash.
func spellings(value string) []string {
	sum := sha256.Sum256([]byte(value))
	all := []string{
		value, url.QueryEscape(value), url.PathEscape(value), strings.Trim(strconv.QuoteToASCII(value), `"`),
		hex.EncodeToString([]byte(value)), hex.EncodeToString(sum[:8]), base64.StdEncoding.EncodeToString(sum[:])[:12],
		base64.URLEncoding.EncodeToString(sum[:])[:12],
	}
	// Base64 depends on where in its text the value begins: of each of the three ways, what no neighbour changes.
	for before := range 3 {
		text := append(make([]byte, before), value...)
		from, to := (before*8+5)/6, len(text)*8/6
		all = append(all, base64.RawStdEncoding.EncodeToString(text)[from:to], base64.RawURLEncoding.EncodeToString(text)[from:to])
	}
	return all
}

// leakStory is a service with the roles of production and private values in everything that it is given.
type leakStory struct {
	shop
	api, worker *journal
	answers     *answerLog
	provider    *echoingProvider
	starting    strings.Builder
	order       string
}

func openLeakStory(t *testing.T) *leakStory {
	t.Helper()
	server := pgtest.Server(t)
	owner, service := separate(t, server)
	admin := pgtest.Open(t, server.URL("orders"))
	_, err := admin.Exec(t.Context(), `ALTER ROLE orders_service PASSWORD '`+leakPassword+`'`)
	require.NoError(t, err)
	pgtest.Close(t, admin)
	u, err := url.Parse(service)
	require.NoError(t, err)
	u.User = url.UserPassword("orders_service", leakPassword)

	s := &leakStory{api: &journal{}, worker: &journal{}, answers: &answerLog{}}
	s.shop = shop{t: t, Service: testkit.StartOn(t, owner, patient("DATABASE_URL", u.String(), "STRIPE_API_KEY", leakAPIKey,
		"STRIPE_WEBHOOK_SECRET", leakSecret, "STRIPE_WEBHOOK_SECRET_NEXT", sandbox.DefaultEventSecret)...)}
	s.Product(t, shopSKU, shopTotal/2, 100)
	s.provider = startEchoingProvider(t, s.Env["STRIPE_BASE_URL"])
	s.Env["STRIPE_BASE_URL"] = s.provider.URL
	s.StopAPI(t)
	s.Log = debugLog(s.api)
	s.StartAPI(t)
	s.Log = debugLog(s.worker)
	s.StartWorker(t)
	s.alice = s.As(t, leakSubject)
	s.alice.HTTP.Transport = s.answers.over(s.alice.HTTP.Transport)
	return s
}

func debugLog(to io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// leakBody is an order of everything private.
func leakBody() string {
	address, err := json.Marshal(map[string]string{
		"name": leakName, "line1": leakLine1, "line2": leakLine2, "city": leakCity, "postal_code": leakPostal, "country": "DE",
	})
	if err != nil {
		panic(err) // strings marshal
	}
	return strings.ReplaceAll(testkit.OrderBody(leakMethod, shopSKU, "2"), testkit.Address, string(address))
}

func (s *leakStory) orders() {
	s.t.Helper()
	placed := place(s.alice, leakKey, leakBody())
	requirePlaced(s.t, placed)
	s.order = placed.Text("id")
	requireReplay(s.t, placed, place(s.alice, leakKey, leakBody()))
	s.alice.PaymentStatus(s.order, "succeeded")
	requireStatus(s.t, http.StatusAccepted, post(s.alice, "/v1/orders/"+s.order+"/refunds", leakKey,
		`{"amount":{"amount":100,"currency":"EUR"},"reason":"`+leakReason+`"}`))
	s.jobDone("refund-charge", s.order)
	tag := s.shop.order(s.order).Header.Get("ETag")
	ship := `{"carrier":"DHL","tracking_number":"` + leakTracking + `"}`
	requireStatus(s.t, http.StatusOK, post(s.alice, "/v1/orders/"+s.order+"/shipment", "", ship, "If-Match", tag))
	requireRefused(s.t, post(s.alice, "/v1/orders/"+s.order+"/shipment", "", ship, "If-Match", tag), http.StatusConflict, "version_conflict")
}

// refusals sends requests that are refused for what is wrong with a private value, or next to one.
func (s *leakStory) refusals() {
	s.t.Helper()
	requireRefused(s.t, place(s.alice, leakKey, one()), http.StatusUnprocessableEntity, "idempotency_key_reused")
	body := leakBody()
	for _, bad := range []string{
		strings.Replace(body, `"DE"`, `"`+leakCity+`"`, 1), // not a country
		strings.Replace(body, `"currency":"EUR"`, `"currency":"`+leakName+`"`, 1),
		strings.Replace(body, `"`+leakMethod+`"`, `["`+leakMethod+`"]`, 1),
		strings.Replace(body, shopSKU, leakLine1, 1), // not a sku
		body[:len(body)-20], body + body, `"` + leakName + `"`, leakName, // no object
		strings.Replace(body, `{`, `{"`+leakMember+`":"`+leakPostal+`",`, 1), // an unknown member
		strings.Replace(body, `"city"`, `"city":"`+leakCity+`","city"`, 1),
		strings.Replace(body, leakLine1, leakLine1+`\ud800`, 1), strings.Replace(body, leakLine1, leakLine1+"\xff", 1),
		strings.Replace(body, leakCity, strings.Repeat(leakCity, 1000), 1),
	} {
		requireStatus(s.t, http.StatusBadRequest, place(s.alice, leakKey+"-1", bad))
	}
	requireStatus(s.t, http.StatusBadRequest, place(s.alice, leakKey+"é", body))
	requireStatus(s.t, http.StatusUnsupportedMediaType, s.alice.Do(http.MethodPost, "/v1/orders", body, "Idempotency-Key", leakKey,
		"Content-Type", "text/"+leakMethod))
	requireStatus(s.t, http.StatusBadRequest, post(s.alice, "/v1/orders/"+s.order+"/shipment", "", `{}`, "If-Match", `"`+leakKey))
	requireStatus(s.t, http.StatusBadRequest, s.alice.Get("/v1/orders?access_token="+leakQuery))
}

// forgedTokens sends private values as credentials of all kinds.
func (s *leakStory) forgedTokens() {
	s.t.Helper()
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	parts := strings.Split(s.alice.Token, ".")
	for _, credentials := range []string{
		"Bearer " + leakForged, "Bearer " + s.alice.Token + "x", "Bearer " + parts[0] + "." + parts[1] + "." + encode(leakForged),
		"Bearer " + encode(`{"alg":"none","kid":"`+leakForged+`"}`) + "." + parts[1] + ".", "Basic " + leakForged, leakForged,
		"Bearer " + encode(`{"`+leakForged+`":1,"`+leakForged+`":2}`) + "." + parts[1] + "." + parts[2],
		"Bearer " + encode(`{"alg":"RS256","kid":"`+leakForged+`"}`) + "." + encode(`{"sub":"`+leakForged+`"}`) + "." + parts[2],
		"Bearer " + s.alice.Token + " " + leakForged,
	} {
		forger := *s.alice
		request, err := http.NewRequest(http.MethodGet, s.URL+"/v1/orders", nil)
		require.NoError(s.t, err)
		request.Header.Set("Authorization", credentials)
		response, err := forger.HTTP.Do(request)
		require.NoError(s.t, err)
		require.NoError(s.t, response.Body.Close())
		require.Equal(s.t, http.StatusUnauthorized, response.StatusCode, credentials)
	}
}

// begin sends the beginning of an order over a connection of its own.
func (s *leakStory) begin() net.Conn {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.URL, "http://"), testkit.Wait)
	require.NoError(s.t, err)
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(testkit.Wait)))
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/orders HTTP/1.1\r\nHost: orders\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n%s", s.alice.Token, leakKey, leakBody())
	require.NoError(s.t, err)
	return conn
}

// slowBody sends half an order; the rest never comes. wait returns when the API has given up on it.
func (s *leakStory) slowBody() (wait func()) {
	s.t.Helper()
	conn := s.begin()
	return func() {
		raw, err := io.ReadAll(conn)
		require.NoError(s.t, err)
		require.Contains(s.t, string(raw), "request_timeout")
		s.answers.note(problemPlace, string(raw))
	}
}

// brokenBodies breaks off in the middle of an order.
func (s *leakStory) brokenBodies() {
	s.t.Helper()
	require.NoError(s.t, s.begin().Close())
	testkit.Eventually(s.t, "a client that has gone", func() bool { return strings.Contains(s.api.text(), `"client_gone"`) })
}

// payments makes the provider fail in ways that quote what it was sent, and decline.
func (s *leakStory) payments() {
	s.t.Helper()
	for i, echo := range echoes {
		s.provider.echoNext(echo)
		order := s.alice.Place(leakKey+strconv.Itoa(i), leakBody())
		testkit.Eventually(s.t, "an answer that echoes", s.provider.echoed)
		testkit.Eventually(s.t, "the next attempt", func() bool {
			s.runNow("charge-order", order)
			return s.payment(order).Text("status") != "pending"
		})
	}
	require.Contains(s.t, s.worker.text(), "provider answered 500", "no answer of the provider was reported")
}

// events delivers what the provider would, with a person in it, and what it would not.
func (s *leakStory) events() {
	s.t.Helper()
	event := eventAbout("evt_leak", "payment_intent.succeeded", map[string]any{
		"id": "pi_1", "object": "payment_intent", "metadata": map[string]string{"tenant_id": "default", "order_id": s.order},
		"shipping": map[string]string{"name": leakHolder}, "payment_method": leakMethod,
	})
	for _, e := range []struct {
		body, secret string
		status       int
	}{
		{event, leakSecret, http.StatusOK}, {event, leakSecret, http.StatusOK}, {event, leakForged, http.StatusBadRequest},
		{event[:len(event)-30], leakSecret, http.StatusBadRequest}, {`"` + leakHolder + `"`, leakSecret, http.StatusBadRequest},
	} {
		answer := s.deliverSigned(e.body, signature(e.body, e.secret, 0))
		requireStatus(s.t, e.status, answer)
		s.answers.note(problemPlace, string(answer.Body))
	}
	requireStatus(s.t, http.StatusBadRequest, s.deliverSigned(event, "t=1,v1="+leakSecret))
}

// databaseErrors makes PostgreSQL refuse a row, whose values its error has, and then go away.
func (s *leakStory) databaseErrors() {
	s.t.Helper()
	s.exec(`ALTER TABLE orders ADD CONSTRAINT test_leak CHECK (ship_city <> '` + leakCity + `') NOT VALID`)
	requireStatus(s.t, http.StatusInternalServerError, place(s.alice, leakKey+"-row", leakBody()))
	s.exec(`ALTER TABLE orders DROP CONSTRAINT test_leak`)

	way := testkit.StartProxy(s.t, s.Env["DATABASE_URL"])
	s.Log = debugLog(s.api)
	other := s.Another(s.t, "DATABASE_URL", way.URL, "DB_ACQUIRE_TIMEOUT", "1s")
	behind := *other.As(s.t, leakSubject)
	behind.HTTP.Transport = s.answers.over(behind.HTTP.Transport)
	way.Cut()
	requireStatus(s.t, http.StatusServiceUnavailable, place(&behind, leakKey, leakBody()))
	require.NoError(s.t, way.Mend())
}

// panics asks a boundary that panics.
func (s *leakStory) panics() {
	s.t.Helper()
	broken := *startBroken(s.t, s.Service, s.api).As(s.t, leakSubject)
	broken.HTTP.Transport = s.answers.over(broken.HTTP.Transport)
	requireStatus(s.t, http.StatusInternalServerError, place(&broken, leakKey, leakBody()))
}

// starts starts processes that must refuse their settings, or find no database.
func (s *leakStory) starts() {
	s.t.Helper()
	for _, env := range []map[string]string{
		{"DATABASE_URL": "mysql://u:" + leakPassword + "@localhost/orders"}, {"DATABASE_URL": "postgres://u:" + leakPassword + "@[localhost"},
		{"DATABASE_URL": "postgres://u:" + leakPassword + "@localhost/orders?sslmode=" + leakPassword},
		{"DATABASE_URL": "postgres://u:" + leakPassword + "@127.0.0.1:1/orders", "DB_CONNECT_TIMEOUT": "1s"},
		{"DATABASE_URL": s.Env["DATABASE_URL"] + "x", "DB_CONNECT_TIMEOUT": "1s"},
		{"STRIPE_WEBHOOK_SECRET": "", "STRIPE_WEBHOOK_SECRET_NEXT": leakSecret},
	} {
		c, err := config.LoadAPI(func(name string) (string, bool) {
			if v, ok := env[name]; ok {
				return v, true
			}
			v, ok := s.Env[name]
			return v, ok
		})
		if err == nil {
			_, err = boot.StartAPI(s.t.Context(), c, s.Metrics["api"], debugLog(s.api))
		}
		require.Error(s.t, err)
		fmt.Fprintln(&s.starting, err)
	}
}

// places reads everything that the story has left.
func (s *leakStory) places() map[string]string {
	s.t.Helper()
	seen := map[string]string{
		apiMetricsPlace:    metricsText(s.t, s.Metrics["api"].Handler()),
		workerMetricsPlace: metricsText(s.t, s.Metrics["worker"].Handler()),
	}
	s.StopWorker(s.t)
	s.StopAPI(s.t) // so that all spans have ended
	spans, err := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(s.Spans.Ended()))
	require.NoError(s.t, err)
	seen[apiLog], seen[workerLog], seen[spanPlace] = s.api.text(), s.worker.text(), string(spans)
	seen[startPlace], seen[providerPlace] = s.starting.String(), s.provider.received()
	for _, place := range []string{problemPlace, headerPlace, answerPlace} {
		seen[place] = s.answers.text(place)
	}
	for name, text := range seen {
		require.NotEmpty(s.t, text, name)
	}
	maps.Copy(seen, columns(s.t, s.Service))
	return seen
}

func metricsText(t testing.TB, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

// columns is all values of each column of each table, as table.column: jobs, their arguments and errors included.
func columns(t testing.TB, s *testkit.Service) map[string]string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_schema = 'public'`)
	require.NoError(t, err)
	type column struct{ Table, Name, Type string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	found := map[string]string{}
	for _, c := range all {
		bytes := "convert_to(%s::text, 'UTF8')"
		if c.Type == "bytea" {
			bytes = "%s"
		}
		var text []byte
		require.NoError(t, s.DB.QueryRow(t.Context(), fmt.Sprintf(`SELECT coalesce(string_agg(`+bytes+`, '\x0a'), '') FROM %s`,
			pgx.Identifier{c.Name}.Sanitize(), pgx.Identifier{c.Table}.Sanitize())).Scan(&text), c)
		found[c.Table+"."+c.Name] = string(text)
	}
	require.Contains(t, found, "river_job.args")
	return found
}

// answerLog notes the answers of the API, by place.
type answerLog struct {
	mu   sync.Mutex
	seen map[string]string
}

func (l *answerLog) note(place, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	l.seen[place] += text + "\n"
}

func (l *answerLog) text(place string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[place]
}

func (l *answerLog) over(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		raw, err := httputil.DumpResponse(response, true)
		head, body, _ := strings.Cut(string(raw), "\r\n\r\n")
		l.note(headerPlace, head)
		if response.StatusCode >= http.StatusBadRequest {
			l.note(problemPlace, body)
		} else {
			l.note(answerPlace, body)
		}
		return response, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// echoes is how the provider, or a proxy before it, may quote what it was sent.
var echoes = []func(w http.ResponseWriter, key, said string){
	func(w http.ResponseWriter, _, said string) { writeEcho(w, 500, stripeError("api_error", "", said)) },
	func(w http.ResponseWriter, key, said string) {
		writeEcho(w, 400, stripeError("invalid_request_error", key, said))
	},
	func(w http.ResponseWriter, key, said string) { writeEcho(w, 401, stripeError(key, key, said)) },
	func(w http.ResponseWriter, _, said string) { writeEcho(w, 502, "<html>"+said) },
	func(w http.ResponseWriter, _, said string) { writeEcho(w, 200, `{"id":"pi_1","object":"`+said) },
	func(w http.ResponseWriter, key, said string) {
		raw, _ := json.Marshal(map[string]any{"id": key, "object": "payment_intent", "status": said, "currency": said, "metadata": said})
		writeEcho(w, 200, string(raw))
	},
	func(w http.ResponseWriter, key, said string) {
		w.Header().Set("Location", "/"+url.PathEscape(said))
		writeEcho(w, 302, said)
	},
	func(w http.ResponseWriter, key, said string) {
		w.Header().Set("Retry-After", key)
		writeEcho(w, 429, stripeError("rate_limit_error", "", said))
	},
}

func stripeError(kind, code, said string) string {
	raw, _ := json.Marshal(map[string]any{"error": map[string]any{
		"type": kind, "code": code, "decline_code": said, "message": said, "param": said, "charge": said, "request_log_url": said,
		"payment_intent": map[string]any{"id": said, "shipping": map[string]string{"name": leakHolder}},
	}})
	return string(raw)
}

func writeEcho(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// echoingProvider stands before the provider, notes what it is sent, and answers with it when it is told to. The provider
// knows no payment method like the one of the story, so it is given another one.
type echoingProvider struct {
	URL string

	mu   sync.Mutex
	next func(w http.ResponseWriter, key, said string)
	seen strings.Builder
}

func startEchoingProvider(t *testing.T, provider string) *echoingProvider {
	t.Helper()
	target, err := url.Parse(provider)
	require.NoError(t, err)
	p := &echoingProvider{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			return rewrite(&r.Body, &r.ContentLength, r.Header, "pm_card_visa", leakMethod)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		if echo := p.take(r.Method, string(dump)); echo != nil {
			echo(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(dump)+" "+leakHolder)
			return
		}
		_ = rewrite(&r.Body, &r.ContentLength, r.Header, leakMethod, "pm_card_visa")
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// rewrite replaces a text in a body.
func rewrite(body *io.ReadCloser, length *int64, header http.Header, from, to string) error {
	raw, err := io.ReadAll(*body)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(raw), from, to)
	*body, *length = io.NopCloser(strings.NewReader(text)), int64(len(text))
	header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

// echoNext makes the next POST be answered with an echo.
func (p *echoingProvider) echoNext(echo func(w http.ResponseWriter, key, said string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = echo
}

func (p *echoingProvider) take(method, request string) (echo func(w http.ResponseWriter, key, said string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.WriteString(request)
	if method == http.MethodPost {
		echo, p.next = p.next, nil
	}
	return echo
}

// echoed reports whether the echo has been answered.
func (p *echoingProvider) echoed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next == nil
}

func (p *echoingProvider) received() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}
