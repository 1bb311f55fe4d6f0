package testkit

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// Together calls f n times at once, from behind a start gate. The results come in the order in which they were ready.
func Together[T any](n int, f func(i int) T) <-chan T {
	results := make(chan T, n)
	gate := make(chan struct{})
	var ready sync.WaitGroup
	for i := range n {
		ready.Add(1)
		go func() {
			ready.Done()
			<-gate
			results <- f(i)
		}()
	}
	ready.Wait()
	close(gate)
	return results
}

// Take receives one value, or learns that the channel is closed, within Wait.
func Take[T any](t TB, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(Wait):
		require.FailNow(t, "nothing was received in time")
	}
	return value
}

// Receive takes n results of Together. What is called there has a bound of its own, as a Caller's requests do.
func Receive[T any](results <-chan T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = <-results
	}
	return all
}
