// Package stripegateway implements the payment provider on Stripe: it creates, confirms and cancels Stripe's
// PaymentIntents, refunds them, lists what Stripe holds, and verifies Stripe's events.
//
// Stripe's answers are bounded in size, compared with the request, and classified by HTTP status, type and code. Error
// texts are not stored.
package stripegateway

import (
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v85"
)

// Config configures the connection to the provider.
type Config struct {
	APIKey    string
	BaseURL   string            // empty: Stripe's own
	Timeout   time.Duration     // of one request, its answer's body included; must be positive
	Transport http.RoundTripper // nil: the default one
}

// Gateway implements app.PaymentProvider.
type Gateway struct {
	stripe  *stripe.Client
	backend stripe.Backend // for lists: see getPage
	apiKey  string
}

// New makes a Gateway. stripe-go's own retries are off: the job queue owns the schedule of attempts. Its logger is off
// because it logs the answers' bodies.
func New(c Config) *Gateway {
	backend := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Timeout: c.Timeout, Transport: newTransport(c.Transport)},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
	}
	if c.BaseURL != "" {
		backend.URL = stripe.String(c.BaseURL)
	}
	backends := stripe.NewBackendsWithConfig(backend)
	return &Gateway{stripe.NewClient(c.APIKey, stripe.WithBackends(backends)), backends.API, c.APIKey}
}
