package app

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/orders/internal/domain"
)

// Settings are the durations that the use cases depend on; docs/settings argues their values.
type Settings struct {
	KeyRetention    time.Duration // how long a completed client key is kept
	EventRetention  time.Duration // how long the id of a provider event is kept
	ProviderTimeout time.Duration // how long one run of a job may spend with the provider, all its calls together
	ProviderLag     time.Duration // how long after a server error a refund may still appear at the provider
	RefusalLimit    time.Duration // how long a refusal that is no decline is retried before the charge or refund fails
}

// Service is the use cases. It has no clock: times are the database's, see Tx.Now.
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

// Expected is the versions that a caller accepts: those of its If-Match that this service gave out.
type Expected []int64

// check compares what the caller saw with what is stored. It is called inside the transaction that carries the
// change, on a locked row: nothing can come between the comparison and the commit.
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

// Canonical sorts the versions and drops doubles, so that equal preconditions have equal fingerprints.
func (e Expected) Canonical() Expected {
	sorted := slices.Clone(e)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
