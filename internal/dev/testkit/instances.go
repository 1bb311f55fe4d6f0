package testkit

import (
	"maps"
	"testing"

	"example.com/orders/internal/infra/telemetry"
)

// At is the same service seen at another address: behind a proxy, or in another process.
func (s *Service) At(url string) *Service {
	other := *s
	other.URL, other.api, other.worker = url, nil, nil
	return &other
}

// Another starts a second instance of the API on the same database. env overrides the settings of the first.
func (s *Service) Another(t testing.TB, env ...string) *Service {
	t.Helper()
	other := s.beside(env)
	other.startAPI(t)
	t.Cleanup(func() { other.StopAPI(t) })
	return other
}

// AnotherWorker starts a worker beside the one of StartWorker. env overrides the settings of the service.
func (s *Service) AnotherWorker(t testing.TB, env ...string) *Service {
	t.Helper()
	other := s.beside(env)
	other.StartWorker(t)
	t.Cleanup(func() { other.StopWorker(t) })
	return other
}

func (s *Service) beside(env []string) *Service {
	other := s.At(s.URL)
	other.Env, other.Metrics = maps.Clone(s.Env), map[string]*telemetry.Telemetry{}
	maps.Copy(other.Env, pairs(env))
	return other
}
