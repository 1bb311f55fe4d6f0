package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxBody bounds what one request may make us read.
const maxBody = 1 << 20

// How a request ended, as Attempt.Outcome shows it.
const (
	outcomeInProgress = "in_progress"
	outcomeExecuted   = "executed"
	outcomeReplayed   = "replayed" // the saved answer of an earlier request with this key
	outcomeRejected   = "rejected" // refused before execution: nothing done, nothing saved
	outcomeMismatch   = "mismatch" // the key was first used for something else
	outcomeInUse      = "in_use"   // the first request with this key is still executing
	outcomeRead       = "read"
)

// Attempt is one Stripe POST that arrived, whatever became of it. ParamsSHA256 covers the parameters in sorted order,
// so equal hashes mean equal parameters. Outcome is in_progress, executed, replayed, rejected, mismatch, in_use, or the
// kind of the fault that answered instead; a fault that met the answer on its way follows as in "executed+drop".
type Attempt struct {
	Path           string            `json:"path"`
	IdempotencyKey string            `json:"idempotency_key"`
	ParamsSHA256   string            `json:"params_sha256"`
	Params         map[string]string `json:"params"`
	Outcome        string            `json:"outcome"`
}

// call is one request to a Stripe endpoint.
type call struct {
	id     string // sent as Request-Id
	req    *http.Request
	form   url.Values
	key    string
	digest string // of the parameters
	fault  fault
	ops    []string // what it is to a FaultRule
}

// answer is a response that is ready to be sent, or to be saved under a key.
type answer struct {
	status   int
	body     []byte
	outcome  string
	original string // the request whose execution made this answer

	retryAfter int // seconds; 0: not said
}

// newCall reads a request and says what is wrong with it before any endpoint looks at it.
func newCall(w http.ResponseWriter, r *http.Request) (call, *apiError) {
	form, refusal := readForm(w, r)
	sum := sha256.Sum256([]byte(form.Encode()))
	c := call{id: newID("req"), req: r, form: form, digest: hex.EncodeToString(sum[:])}
	if r.Method == http.MethodPost {
		c.key = r.Header.Get("Idempotency-Key")
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer sk_test_") {
		return c, unauthorized()
	}
	if len(c.key) > maxKeyLength {
		return c, invalid("", "", "An idempotency key has at most 255 characters.")
	}
	return c, refusal
}

// readForm reads the parameters of a POST from its body, those of a GET from its address.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *apiError) {
	if r.Method != http.MethodPost {
		return r.URL.Query(), nil
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength != 0 && media != "application/x-www-form-urlencoded" {
		return nil, invalid("", "", "The body must be form-encoded (application/x-www-form-urlencoded).")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return r.PostForm, invalid("", "", "The body is not well-formed form data.")
	}
	return r.PostForm, nil
}

// endpoint wraps what every Stripe endpoint shares: the API key, the record of attempts, the faults.
func (s *Sandbox) endpoint(op string, run func(call) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, refusal := newCall(w, r)
		c.ops = operations(op, c)
		arrival := s.arrived(c)
		a := s.answer(&c, refusal, run)
		s.answered(arrival, c, a)
		s.deliver(w, c, a)
	}
}

// operations are the names under which a rule can mean a call. The call that charges is the confirmation, or a creation
// that confirms at once.
func operations(op string, c call) []string {
	if op == OpConfirmIntent || op == OpCreateIntent && c.form.Get("confirm") == "true" {
		return []string{op, OpCharge, OpAny}
	}
	return []string{op, OpAny}
}

func (s *Sandbox) answer(c *call, refusal *apiError, run func(call) answer) answer {
	if refusal != nil {
		return refusal.answer(outcomeRejected)
	}
	c.fault = s.takeFault(*c)
	if e := c.fault.instead(*c); e != nil {
		return e.answer(c.fault.kind)
	}
	return run(*c)
}

// arrived records a POST and returns its place among the attempts.
func (s *Sandbox) arrived(c call) int {
	if c.req.Method != http.MethodPost {
		return -1
	}
	shown := make(map[string]string, len(c.form))
	for name, values := range c.form {
		shown[name] = strings.Join(values, ",")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, Attempt{
		Path: c.req.URL.Path, IdempotencyKey: c.key, ParamsSHA256: c.digest, Params: shown, Outcome: outcomeInProgress,
	})
	return len(s.attempts) - 1
}

// answered completes the record, before the answer leaves: a client that saw the answer, or its loss, finds
// the outcome.
func (s *Sandbox) answered(arrival int, c call, a answer) {
	outcome := a.outcome
	if c.fault.kind != "" && outcome != c.fault.kind {
		outcome += "+" + c.fault.kind
	}
	s.cfg.Log.Info("stripe", "method", c.req.Method, "path", c.req.URL.Path, "status", a.status, "outcome", outcome,
		"idempotency_key", c.key)
	if arrival < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[arrival].Outcome = outcome
}

// deliver sends the answer, unless a fault meets it on its way.
func (s *Sandbox) deliver(w http.ResponseWriter, c call, a answer) {
	// Go's client, and others, silently resend a keyed request when a connection that they reused breaks. Never
	// offering one for reuse makes sure that a dropped answer is seen by the code under test.
	if !s.cfg.KeepAlive {
		w.Header().Set("Connection", "close")
	}
	if a = s.meetFault(c, a); a.status == 0 {
		panic(http.ErrAbortHandler) // cuts the connection without an answer
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", c.id)
	if c.key != "" {
		w.Header().Set("Idempotency-Key", c.key)
	}
	if a.original != "" {
		w.Header().Set("Original-Request", a.original)
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	if a.status == http.StatusTooManyRequests {
		w.Header().Set("Stripe-Rate-Limited-Reason", "global-rate")
	}
	if a.outcome == outcomeReplayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that went away has chosen not to know
}

func jsonAnswer(status int, v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return internalError().answer("")
	}
	return answer{status: status, body: body}
}
