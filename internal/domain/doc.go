// Package domain holds the aggregates and their rules: which changes are allowed in which state, and the error codes of
// refused changes.
//
// It is pure: no I/O, no context, no clock and no random numbers of its own; times and ids come in as arguments. A
// Check function validates the caller's input first, and reports every invalid field. Each aggregate keeps its fields
// private behind one State value, is made from checked values by a constructor, and is rebuilt from storage by its
// Restore function. Each carries a version that the store compares at every save.
package domain
