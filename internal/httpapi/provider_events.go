package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"example.com/orders/internal/app"
	"example.com/orders/internal/domain"
	"example.com/orders/internal/httpapi/openapi"
)

const (
	schemeSignature = "providerSignature" // the contract's security scheme
	headerSignature = "Stripe-Signature"
	// maxEvent bounds a provider event, in bytes. The largest objects have some tens of KiB.
	maxEvent = 256 << 10
)

var errEventTooLarge = domain.Refuse(codeBodyTooLarge, "The event is larger than 256 KiB.")

type eventKey struct{}

// verifySignature reads the raw body of a signed operation, up to maxEvent bytes, and verifies its signature header,
// which must not be repeated. It puts the parsed event into the context. The body is not parsed before the signature is
// verified.
func verifySignature(events app.EventParser) step {
	return func(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
		if !operationOf(r.Context()).signed {
			return r, nil
		}
		signatures := r.Header.Values(headerSignature)
		if len(signatures) != 1 {
			return r, errInvalidSignature
		}
		raw, err := readEvent(w, r)
		if err != nil {
			return r, err
		}
		event, err := events.ParseEvent(raw, signatures[0])
		switch {
		case errors.Is(err, app.ErrInvalidSignature):
			return r, errInvalidSignature
		case err != nil:
			return r, malformed("The event could not be read.")
		}
		r.Body = io.NopCloser(bytes.NewReader(raw)) // for the generated handler
		return r.WithContext(context.WithValue(r.Context(), eventKey{}, event)), nil
	}
}

func readEvent(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := checkMedia(w, r); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errEventTooLarge
	}
	if err != nil {
		return nil, readError(err)
	}
	return raw, nil
}

// unlessSigned skips a step for a signed operation: its caller has no token, and the provider defines its body.
func unlessSigned(s step) step {
	return func(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
		if operationOf(r.Context()).signed {
			return r, nil
		}
		return s(w, r)
	}
}

// ReceiveProviderEvent implements receive-provider-event. It uses the event that verifySignature put into the context,
// never the decoded body.
func (s *server) ReceiveProviderEvent(
	ctx context.Context, _ openapi.ReceiveProviderEventRequestObject,
) (openapi.ReceiveProviderEventResponseObject, error) {
	event, ok := ctx.Value(eventKey{}).(app.ProviderEvent)
	if !ok {
		return nil, errInvalidSignature
	}
	if err := s.app.ReceiveProviderEvent(ctx, event); err != nil {
		return nil, err
	}
	return openapi.ReceiveProviderEvent200JSONResponse{Body: openapi.ProviderEventReceipt{Received: true}}, nil
}
