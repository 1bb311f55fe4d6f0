package domain

import (
	"regexp"
	"time"
)

var skuPattern = regexp.MustCompile(`^[A-Z0-9][A-Z0-9-]{0,63}$`)

// ValidSKU reports whether s can name a product: 1 to 64 capitals, digits and hyphens, not starting with a hyphen.
func ValidSKU(s string) bool { return skuPattern.MatchString(s) }

// Product is one sku of the catalogue. Its stock is a separate aggregate, so that a sale does not change the product's
// version.
type Product struct{ s ProductState }

// ProductState is a product's fields, for storage and responses.
type ProductState struct {
	Tenant    string
	SKU       string
	Details   ProductDetails
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   int64
}

// ProductDetails is what an editor may change.
type ProductDetails struct {
	Name   string
	Price  Money
	Active bool
}

// Check adds what is wrong with the details to v.
func (d ProductDetails) Check(v *Violations) {
	checkText(v, "name", d.Name, 1, 200)
	if !ValidCurrency(d.Price.Currency) {
		v.Add("price/currency", "pattern", "is not a currency that can be charged")
	} else if !d.Price.Payable() {
		v.Add("price/amount", "range", "must be 1 to 99999999, and a multiple of 10 in a currency of three decimals")
	}
}

// NewProduct makes a product of the catalogue.
func NewProduct(tenant, sku string, d ProductDetails, at time.Time) *Product {
	return &Product{ProductState{Tenant: tenant, SKU: sku, Details: d, CreatedAt: at, UpdatedAt: at}}
}

// RestoreProduct rebuilds a product from storage.
func RestoreProduct(s ProductState) *Product { return &Product{s} }

// State returns the product's fields.
func (p *Product) State() ProductState { return p.s }

// Stored sets the version that the store gave the product.
func (p *Product) Stored(version int64) { p.s.Version = version }

// Edit replaces the details.
func (p *Product) Edit(d ProductDetails, at time.Time) { p.s.Details, p.s.UpdatedAt = d, at }
