package domain

import (
	"fmt"
	"math"
	"time"
)

// MaxDelta bounds one stock adjustment, in units, in either direction.
const MaxDelta = 1_000_000

// Stock is the units on hand of one sku. Changes commute, so callers send deltas and no version: concurrent changes
// wait for the row lock and are not refused.
type Stock struct{ s StockState }

// StockState is a stock's fields, for storage and responses.
type StockState struct {
	Tenant    string
	SKU       string
	OnHand    int64
	UpdatedAt time.Time
	Version   int64
}

// NewStock makes the empty stock of a sku.
func NewStock(tenant, sku string, at time.Time) *Stock {
	return &Stock{StockState{Tenant: tenant, SKU: sku, UpdatedAt: at}}
}

// RestoreStock rebuilds a stock from storage.
func RestoreStock(s StockState) *Stock { return &Stock{s} }

// State returns the stock's fields.
func (k *Stock) State() StockState { return k.s }

// Stored sets the version that the store gave the stock.
func (k *Stock) Stored(version int64) { k.s.Version = version }

// Reserve removes units for an order, or refuses with insufficient_stock.
func (k *Stock) Reserve(units int64, at time.Time) error {
	if units < 0 {
		return fmt.Errorf("cannot reserve %d units of %s", units, k.s.SKU)
	}
	return k.Adjust(-units, at)
}

// Return puts the units of a cancelled order back.
func (k *Stock) Return(units int64, at time.Time) error {
	if units < 0 {
		return fmt.Errorf("cannot return %d units of %s", units, k.s.SKU)
	}
	return k.Adjust(units, at)
}

// Adjust changes the units on hand by delta. It refuses with insufficient_stock below zero and with
// validation_failed beyond int64.
func (k *Stock) Adjust(delta int64, at time.Time) error {
	switch {
	case delta > 0 && k.s.OnHand > math.MaxInt64-delta:
		return Violations{{"delta", "range", "the stock would be too large"}}.Err()
	case k.s.OnHand+delta < 0:
		return Refuse(CodeInsufficientStock, "There is not enough of "+k.s.SKU+" in stock.")
	}
	k.s.OnHand, k.s.UpdatedAt = k.s.OnHand+delta, at
	return nil
}
