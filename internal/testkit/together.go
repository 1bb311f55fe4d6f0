package testkit

import "sync"

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

// Receive takes n results.
func Receive[T any](results <-chan T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = <-results
	}
	return all
}
