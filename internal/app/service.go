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
	ChargeHorizon   time.Duration // how long after its first attempt a provider call may be repeated without a lookup
	ProviderTimeout time.Duration // how long one run of a job may spend with the provider, all its calls together
}

// Service is the use cases.
type Service struct {
	store    Store
	reader   Reader
	gateway  PaymentGateway
	settings Settings
	clock    Clock
	newID    func() uuid.UUID
}

// New builds the use cases. The API passes no gateway: it never calls the provider.
func New(store Store, reader Reader, gateway PaymentGateway, settings Settings, clock Clock) *Service {
	return &Service{
		store: store, reader: reader, gateway: gateway, settings: settings, clock: clock,
		newID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
	}
}

// now is the time to store: in UTC and in microseconds, as PostgreSQL keeps it, so that what is answered at once and
// what is read later are equal.
func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

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

func skus(lines []domain.Wanted) []string {
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
