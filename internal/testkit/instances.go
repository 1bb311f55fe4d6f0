package testkit

import (
	"maps"
	"testing"
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
	other := s.At("")
	other.Env = maps.Clone(s.Env)
	maps.Copy(other.Env, pairs(env))
	other.StartAPI(t)
	t.Cleanup(func() { other.StopAPI(t) })
	return other
}
