package domain

// Code is a stable error code. Codes are part of the public contract (docs/problems.md): they never change their
// meaning.
type Code string

// The refusals of the domain.
const (
	CodeValidationFailed     Code = "validation_failed"
	CodeInsufficientStock    Code = "insufficient_stock"
	CodeProductUnavailable   Code = "product_unavailable"
	CodeCurrencyMismatch     Code = "currency_mismatch"
	CodeOrderNotCancellable  Code = "order_not_cancellable"
	CodeOrderNotShippable    Code = "order_not_shippable"
	CodePaymentNotSettled    Code = "payment_not_settled"
	CodeAddressNotChangeable Code = "address_not_changeable"
	CodeRefundExceedsCharge  Code = "refund_exceeds_charge"
	CodeOrderNotRefundable   Code = "order_not_refundable"
)

// Error is an error that the caller may see: a stable code and a sentence without internals.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError // set for CodeValidationFailed only
}

// FieldError names one invalid field of the input by its path, such as lines/0/quantity.
type FieldError struct {
	Field   string
	Code    string
	Message string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Refuse returns an Error with a code and a sentence.
func Refuse(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Violations collects the invalid fields of one input, so that the caller sees all of them at once.
type Violations []FieldError

// Add records that field is invalid.
func (v *Violations) Add(field, code, message string) {
	*v = append(*v, FieldError{Field: field, Code: code, Message: message})
}

// Err returns nil if nothing was added.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return &Error{Code: CodeValidationFailed, Message: "The request is not valid.", Fields: v}
}
