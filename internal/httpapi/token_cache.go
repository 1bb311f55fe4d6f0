package httpapi

import (
	"crypto/sha256"
	"sync"
)

const (
	// maxVerified is how many verified tokens are remembered; maxRemembered is the longest of them, in bytes. Together they
	// bound the memory: 40 MiB at worst, and about 4 MiB for tokens of ordinary claims.
	maxVerified   = 10_000
	maxRemembered = 4 << 10
)

// tokenHash is the hash of a token. The token itself is never stored.
type tokenHash = [sha256.Size]byte

// tokenCache remembers verified tokens, so that their signatures are checked once. Its size is bounded, and the oldest
// entry is evicted. An entry that was verified with an earlier key set is ignored, so that tokens of a withdrawn key
// are rejected. Refused tokens are not cached.
type tokenCache struct {
	mu     sync.Mutex
	tokens map[tokenHash]verifiedToken
	order  []tokenHash // a ring buffer in insertion order
	next   int         // index of the next write
}

func newTokenCache(size int) *tokenCache {
	return &tokenCache{tokens: make(map[tokenHash]verifiedToken), order: make([]tokenHash, size)}
}

func (c *tokenCache) get(id tokenHash, generation uint64) (verifiedToken, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.tokens[id]
	return v, ok && v.generation == generation
}

func (c *tokenCache) put(id tokenHash, v verifiedToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.tokens[id]; !known {
		delete(c.tokens, c.order[c.next])
		c.order[c.next] = id
		c.next = (c.next + 1) % len(c.order)
	}
	c.tokens[id] = v
}
