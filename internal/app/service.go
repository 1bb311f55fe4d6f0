package app

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// Settings are the durations that the use cases depend on; docs/settings explains their values.
type Settings struct {
	KeyRetention    time.Duration // how long a completed client key is kept
	EventRetention  time.Duration // how long the id of a provider event is kept
	ProviderTimeout time.Duration // how long all provider calls of one job run may take together
	ProviderLag     time.Duration // how long after a server error a refund may still appear at the provider
	RefusalLimit    time.Duration // how long a refusal other than a decline is retried before the charge or refund fails
}

// Service implements the use cases. It has no clock: times are the database's, see Tx.Now.
type Service struct {
	store    Store
	reader   Reader
	provider PaymentProvider
	settings Settings
	monitor  Monitor
	newID    func() uuid.UUID
}

// New builds the use cases. The API passes no provider: it never calls it.
func New(store Store, reader Reader, provider PaymentProvider, settings Settings, monitor Monitor) *Service {
	return &Service{
		store: store, reader: reader, provider: provider, settings: settings, monitor: monitor,
		newID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
	}
}

func notFoundAs(err, as error) error {
	if errors.Is(err, ErrNotFound) {
		return as
	}
	return err
}

// Expected is the versions that a caller accepts, from its If-Match header.
type Expected []int64

// check compares the caller's versions with the stored one. It runs in the transaction of the change, on a locked row,
// so no other change can come between the comparison and the commit.
func (e Expected) check(stored int64) error {
	if slices.Contains(e, stored) {
		return nil
	}
	return ErrVersionConflict
}

func skus(lines []domain.Item) []string {
	names := make([]string, len(lines))
	for i, l := range lines {
		names[i] = l.SKU
	}
	return names
}

// Canonical sorts the versions and removes duplicates, so that equal preconditions have equal fingerprints.
func (e Expected) Canonical() Expected {
	sorted := slices.Clone(e)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
