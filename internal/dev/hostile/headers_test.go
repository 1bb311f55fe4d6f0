package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"example.com/orders/internal/dev/sandbox"
)

const (
	headerKey         = "Idempotency-Key"
	headerIfMatch     = "If-Match"
	headerIfNoneMatch = "If-None-Match"
	headerSignature   = "Stripe-Signature"
)

// tokenFaults come before all others: whatever else is wrong, the token is looked at first.
func tokenFaults(op *operation) (faults []fault) {
	if op.signed {
		return nil
	}
	none, other := refusal(http.StatusUnauthorized, "unauthenticated"), refusal(http.StatusForbidden, "forbidden")
	const header = "Authorization"
	add := func(name string, w want, values ...string) {
		faults = append(faults, headerFault(name, w, header, values...))
		faults = append(faults, fault{"everything wrong and " + header + ": " + name, func(q *request) {
			q.spoil()
			q.set(header, values...)
		}, w})
	}
	add("missing", none)
	for _, value := range []string{
		"", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "Bearer a.b.c", "Bearer  " + strings.Repeat("x", 20000), "Bearer é", "Bearer " + op.token + " x",
		"Bearer " + op.token + ",", "Token " + op.token, "Bearer:" + op.token, op.token, "Bearer " + op.token[:len(op.token)-2], "Bearer " + op.token + "=",
		"Bearer \"" + op.token + "\"", "Bearer " + strings.ToLower(op.token), "Bearer " + op.expired, "Bearer " + unsigned(op.token),
	} {
		add(shorten(value), none, value)
	}
	add("twice", none, "Bearer "+op.token, "Bearer "+op.token)
	add("without the scope", other, "Bearer "+op.narrow)
	fine := want{verdict: good}
	for _, value := range []string{"bearer " + op.token, "BEARER  " + op.token} {
		faults = append(faults, headerFault(shorten(value), fine, header, value))
	}
	return faults
}

// unsigned is a token that says that it needs no signature (RFC 8725, section 2.1).
func unsigned(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	return "eyJhbGciOiJub25lIn0." + claims + "."
}

// spoil makes everything but the token wrong.
func (q *request) spoil() {
	q.body = []byte("{")
	q.set("Content-Type", "text/plain")
	q.set("Content-Encoding", "gzip")
	q.set(headerKey, "a b")
	q.set(headerIfMatch, "x")
	q.target += "?zzz=%ff"
}

// keyFaults are the grammar of the client key.
func keyFaults(op *operation) (faults []fault) {
	if !op.keyed {
		return []fault{headerFault("where none is taken", want{verdict: good}, headerKey, "a b", "c")}
	}
	required := refusal(http.StatusBadRequest, "idempotency_key_required")
	bad, fine := refusal(http.StatusBadRequest, "invalid_idempotency_key"), want{verdict: good}
	faults = append(faults, headerFault("missing", required, headerKey), headerFault("twice", bad, headerKey, "a", "a"))
	for _, value := range []string{
		"", " ", "a b", "a\tb", "é", "\x80", "\xff", strings.Repeat("k", 256), strings.Repeat("k", 5000), "“k”", "k\u00a0",
	} {
		faults = append(faults, headerFault(shorten(value), bad, headerKey, value))
	}
	for _, value := range []string{
		"!", "~", `"quoted"`, "a,b", "a;b=c", strings.Repeat("~", 255), " padded\t", "'; DROP TABLE idempotency_keys; --"[:2], "%00", "null", "*", "\\", "{}",
	} {
		faults = append(faults, headerFault(shorten(value), fine, headerKey, value))
	}
	return faults
}

// malformedTags are no lists of entity tags (RFC 9110, section 8.8.3).
func malformedTags() []string {
	return []string{
		"x", `"x`, `x"`, "W/", "W/x", `w/"x"`, `W/ "x"`, `"a" "b"`, `"a""b"`, `*, "a"`, `"a", *`, "**", `'a'`, "\"a b\"", "\"a\tb\"", "\"a\x7f\"", `"a";`, "null", `"a", x`,
		strings.Repeat(`"a", `, 300) + `"a"`, `"` + strings.Repeat("a", 1025) + `"`,
	}
}

// preconditionFaults are the grammar of If-Match and If-None-Match.
func preconditionFaults(op *operation) (faults []fault) {
	bad := refusal(http.StatusBadRequest, "invalid_precondition")
	fine := want{verdict: good}
	for _, header := range []string{headerIfMatch, headerIfNoneMatch} {
		if !op.takes[header] {
			faults = append(faults, headerFault("where none is taken", fine, header, "x"))
			continue
		}
		for _, value := range malformedTags() {
			faults = append(faults, headerFault(shorten(value), bad, header, value))
		}
		faults = append(faults, headerFault("malformed in a second line", bad, header, `"a"`, "x"))
		if !op.safe() {
			continue
		}
		for _, value := range []string{"*", `"a"`, `W/"a"`, `"", "é"`, ",", ` , "a" ,, `, `"a\"`, ""} {
			faults = append(faults, headerFault(shorten(value), fine, header, value))
		}
	}
	if op.versioned {
		faults = append(faults, versionFaults(op)...)
	}
	return faults
}

// versionFaults are well-formed preconditions of a write that name no version, or not the one that is there.
func versionFaults(op *operation) (faults []fault) {
	missing := refusal(http.StatusPreconditionRequired, "precondition_required")
	stale := refusal(http.StatusConflict, "version_conflict")
	faults = append(faults, headerFault("missing", missing, headerIfMatch))
	for _, value := range []string{"*", "", " ", ",", " ,, "} {
		faults = append(faults, headerFault(value, missing, headerIfMatch, value))
	}
	for _, value := range []string{`"a"`, `""`, `"é"`, `"a", "b"`, `"` + strings.Repeat("a", 1000) + `"`, `"AAAAAAAAAAAAAAAAAAAAAA"`, `"1"`} {
		faults = append(faults, headerFault(shorten(value), stale, headerIfMatch, value))
	}
	faults = append(faults,
		tagFault("weak", stale, func(tag string) []string { return []string{"W/" + tag} }),
		tagFault("in capitals", stale, func(tag string) []string { return []string{strings.ToUpper(tag)} }),
		tagFault("padded", stale, func(tag string) []string { return []string{strings.TrimSuffix(tag, `"`) + `="`} }),
		tagFault("in a list", want{verdict: good}, func(tag string) []string { return []string{`"x" ,W/"y",` + tag + " ,"} }),
		tagFault("in a second line", want{verdict: good}, func(tag string) []string { return []string{`"x"`, tag} }))
	if op.takes[headerIfNoneMatch] {
		faults = append(faults, creationFaults()...)
	}
	return faults
}

// creationFaults are those of If-None-Match in a write, which creates what is not there.
func creationFaults() []fault {
	bad := refusal(http.StatusBadRequest, "invalid_precondition")
	create := func(value string, change func(q *request)) func(q *request) {
		return func(q *request) {
			q.drop(headerIfMatch)
			q.set(headerIfNoneMatch, value)
			change(q)
		}
	}
	created := 0
	fresh := func(q *request) {
		created++
		q.segment(strings.Count(q.target, "/"), func(string) string { return fmt.Sprintf("NEW-%d", created) })
	}
	here := func(*request) {}
	return []fault{
		headerFault("beside If-Match", bad, headerIfNoneMatch, "*"),
		{"If-None-Match: a tag", create(`"a"`, here), bad},
		{"If-None-Match: a tag of what is not there", create(`"a"`, fresh), bad},
		{"If-None-Match: * of what is there", create("*", here), refusal(http.StatusConflict)},
		{"If-None-Match: * of what is not there", create("*", fresh), want{verdict: good}},
	}
}

// tagFault changes the tag that the request has.
func tagFault(name string, w want, change func(tag string) []string) fault {
	return fault{"If-Match: " + name, func(q *request) { q.set(headerIfMatch, change(q.get(headerIfMatch))...) }, w}
}

// signatureFaults are those of an event's signature.
func signatureFaults() (faults []fault) {
	bad := refusal(http.StatusBadRequest, "invalid_signature")
	sign := func(name string, w want, lines func(q *request) []string) {
		faults = append(faults, fault{headerSignature + ": " + name, func(q *request) {
			q.signed = false
			q.set(headerSignature, lines(q)...)
		}, w})
	}
	of := func(q *request, secret string, at time.Time) string {
		return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: q.body, Secret: secret, Timestamp: at}).Header
	}
	now := func(q *request) string { return of(q, sandbox.DefaultEventSecret, time.Now()) }
	sign("missing", bad, func(*request) []string { return nil })
	for _, value := range []string{"", "t=1", "v1=00", "t=,v1=", "t=x,v1=y", "t=9223372036854775808,v1=00", "t=-1,v1=00", "é", strings.Repeat("v1=00,", 2000), "t=1,t=2", "="} {
		sign(shorten(value), bad, func(*request) []string { return []string{value} })
	}
	sign("twice", bad, func(q *request) []string { return []string{now(q), now(q)} })
	sign("of another secret", bad, func(q *request) []string { return []string{of(q, "whsec_x", time.Now())} })
	sign("too old", bad, func(q *request) []string {
		return []string{of(q, sandbox.DefaultEventSecret, time.Now().Add(-time.Hour))}
	})
	sign("from the future", want{}, func(q *request) []string {
		return []string{of(q, sandbox.DefaultEventSecret, time.Now().Add(time.Hour))}
	})
	sign("of other bytes", bad, func(q *request) []string {
		signature := now(q)
		q.body = append(q.body, ' ')
		return []string{signature}
	})
	sign("of the scheme v0", bad, func(q *request) []string { return []string{strings.Replace(now(q), "v1=", "v0=", 1)} })
	sign("under another time", bad, func(q *request) []string {
		_, signature, _ := strings.Cut(now(q), ",")
		return []string{fmt.Sprintf("t=%d,", time.Now().Unix()+60) + signature}
	})
	return faults
}
