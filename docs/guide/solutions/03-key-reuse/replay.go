//go:build exercise

// Package exercise answers repeated requests.
package exercise

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrKeyReused says that the key was used for another request.
var ErrKeyReused = errors.New("the key was used for another request")

// Stored is what is kept under a key.
type Stored struct {
	Fingerprint [32]byte
	Answer      string
}

// Fingerprint is the hash of the canonical form (RFC 8785), with integers as they are written.
func Fingerprint(body []byte) ([32]byte, error) {
	canonical := jsontext.Value(slices.Clone(body))
	if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(canonical), nil
}

// Replay answers a request whose key is stored: with the stored answer, or with ErrKeyReused.
func Replay(s Stored, body []byte) (string, error) {
	print, err := Fingerprint(body)
	if err != nil {
		return "", err
	}
	if print != s.Fingerprint {
		return "", ErrKeyReused
	}
	return s.Answer, nil
}
