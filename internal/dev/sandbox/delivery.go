package sandbox

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	replayAge       = time.Hour // how old the signature of a late replay is
	maxEventAnswer  = 4 << 10   // bytes of an answer that are read, so that its connection can be used again
	signatureScheme = "v1"      // https://docs.stripe.com/webhooks#verify-manually
	forgedSecret    = "whsec_of_a_forger"
)

// post makes one try and returns the status of the answer, 0 without one.
func (c *courier) post(url string, secrets []string, p *parcel) int {
	at := time.Now()
	switch p.Kind {
	case DeliveryReplay:
		at = at.Add(-replayAge)
	case DeliveryForged:
		secrets = []string{forgedSecret}
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, url, bytes.NewReader(p.body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	req.Header.Set("Stripe-Signature", signature(at, p.body, secrets))
	res, err := c.client.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = res.Body.Read(make([]byte, maxEventAnswer))
	return res.StatusCode
}

// signature is the header by which a receiver knows an event for Stripe's own: the time, and one signature for each
// secret over the time, a dot and the body.
func signature(at time.Time, body []byte, secrets []string) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	parts := []string{"t=" + seconds}
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(seconds + "." + string(body)))
		parts = append(parts, signatureScheme+"="+hex.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(parts, ",")
}

// forge is what a customer would send to get goods without paying, or a refund twice: the event's own id, and the
// opposite of the truth.
func forge(ev *event) []byte {
	var object map[string]any
	_ = json.Unmarshal(ev.Data.Object, &object) // we made it
	forged := *ev
	if object["object"] == "refund" {
		object["status"], forged.Type = statusFailed, "refund.failed"
	} else {
		object["status"], object["amount_received"], forged.Type = statusSucceeded, object["amount"], "payment_intent.succeeded"
	}
	forged.Data.Object, _ = json.Marshal(object) // it was JSON before
	body, _ := json.Marshal(&forged)
	return body
}
