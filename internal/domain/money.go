package domain

import (
	"errors"
	"math"
	"math/bits"
)

// ErrOverflow means that a sum or product of amounts overflows int64.
var ErrOverflow = errors.New("amount out of range")

// ErrCurrencies means that a calculation mixes two currencies.
var ErrCurrencies = errors.New("amounts of different currencies")

// Money is an amount in minor units (cents) of an ISO 4217 currency. It is never a float.
type Money struct {
	Amount   int64
	Currency string
}

// Add returns m+n, ErrCurrencies or ErrOverflow.
func (m Money) Add(n Money) (Money, error) {
	if m.Currency != n.Currency {
		return Money{}, ErrCurrencies
	}
	sum := m.Amount + n.Amount
	if (sum > m.Amount) != (n.Amount > 0) {
		return Money{}, ErrOverflow
	}
	return Money{sum, m.Currency}, nil
}

// Sub returns m-n, ErrCurrencies or ErrOverflow.
func (m Money) Sub(n Money) (Money, error) {
	if m.Currency != n.Currency {
		return Money{}, ErrCurrencies
	}
	difference := m.Amount - n.Amount
	if (difference < m.Amount) != (n.Amount > 0) {
		return Money{}, ErrOverflow
	}
	return Money{difference, m.Currency}, nil
}

// Times returns m multiplied by a count of units, or ErrOverflow. Both must not be negative.
func (m Money) Times(count int64) (Money, error) {
	if m.Amount < 0 || count < 0 {
		return Money{}, ErrOverflow
	}
	hi, lo := bits.Mul64(uint64(m.Amount), uint64(count))
	if hi != 0 || lo > math.MaxInt64 {
		return Money{}, ErrOverflow
	}
	return Money{int64(lo), m.Currency}, nil
}
