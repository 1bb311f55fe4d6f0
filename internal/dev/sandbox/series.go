package sandbox

import "sort"

// object is what Stripe lists: it has an id and the time of its creation, in seconds since 1970.
type object interface {
	ref() (id string, created int64)
}

// series keeps objects in the order of their creation and finds each by its id at once. Objects never change: a change
// puts a new one with the same id in the place of the old one, so a reader of the old one can go on.
type series[T object] struct {
	items []T
	at    map[string]int
}

// put adds an object, or replaces the one with its id. It reports whether the object is new.
func (s *series[T]) put(item T) bool {
	if s.at == nil {
		s.at = map[string]int{}
	}
	id, _ := item.ref()
	if i, ok := s.at[id]; ok {
		s.items[i] = item
		return false
	}
	s.at[id] = len(s.items)
	s.items = append(s.items, item)
	return true
}

// get returns the object as it is now, or the zero value: nil.
func (s *series[T]) get(id string) (item T) {
	if i, ok := s.at[id]; ok {
		item = s.items[i]
	}
	return item
}

// paging is which part of a list is asked for: the objects created at second from or later, older than one of them.
type paging struct {
	limit int
	after string // an id; empty: from the newest
	from  int64
}

// page returns that part, the newest first, and whether there is more. Objects that keep refuses are passed over. It takes
// O(log n) to find the end, then a step for each object that it looks at. It returns false if the list has no object with
// the id in paging.
func (s *series[T]) page(p paging, keep func(T) bool) (items []T, more, found bool) {
	created := func(i int) int64 { _, t := s.items[i].ref(); return t }
	low, high := sort.Search(len(s.items), func(i int) bool { return created(i) >= p.from }), len(s.items)
	if p.after != "" {
		if high, found = s.at[p.after]; !found {
			return nil, false, false
		}
	}
	items = []T{}
	for i := high - 1; i >= low; i-- {
		if keep != nil && !keep(s.items[i]) {
			continue
		}
		if len(items) == p.limit {
			return items, true, true
		}
		items = append(items, s.items[i])
	}
	return items, false, true
}
