// Package domain holds the aggregates and their rules: what may change, when, and what a refusal is called.
//
// It is pure: no I/O, no context, no clock and no random numbers of its own; times and ids come in as arguments.
// What a caller sends is checked first, and whole, by a Check function, which names every field that is wrong. Each
// aggregate keeps its fields private behind one State value, is made from checked values by a constructor, and is rebuilt
// from storage by its Restore function. Each carries a version that the store compares at every save.
package domain
