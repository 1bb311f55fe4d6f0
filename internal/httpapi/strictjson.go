package httpapi

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeStrictly reads one JSON value as maps, slices and scalars. It refuses what encoding/json accepts: duplicate
// members, invalid UTF-8, lone surrogates (the last two by jsontext), anything after the value, and the null character,
// which PostgreSQL's text cannot hold.
func decodeStrictly(raw []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)) // decodeObject finds them
	value, err := decodeValue(d)
	if errors.Is(err, errDuplicateMember) {
		return nil, malformed("The body repeats a member.")
	}
	if errors.Is(err, errNullCharacter) {
		return nil, malformed("The body contains a null character.")
	}
	if err != nil {
		return nil, malformed("The body is not valid JSON.")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, malformed("The body goes on after its JSON value.")
	}
	return value, nil
}

var (
	errNullCharacter   = errors.New("null character")
	errDuplicateMember = errors.New("duplicate member")
)

// decodeValue reads the next value. Its depth is bounded by jsontext.
func decodeValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		return decodeObject(d)
	case '[':
		return decodeArray(d)
	case '"':
		return stringOf(token)
	case '0':
		return number(token.String()), nil
	case 'n':
		return nil, nil //nolint:nilnil // the value is null
	default:
		return token.Bool(), nil
	}
}

func decodeObject(d *jsontext.Decoder) (any, error) {
	object := map[string]any{}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name, err := stringOf(token)
		if err != nil {
			return nil, err
		}
		if _, duplicate := object[name]; duplicate {
			return nil, errDuplicateMember
		}
		if object[name], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return object, err
}

func decodeArray(d *jsontext.Decoder) (any, error) {
	array := []any{}
	for d.PeekKind() != ']' {
		item, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		array = append(array, item)
	}
	_, err := d.ReadToken()
	return array, err
}

func stringOf(token jsontext.Token) (string, error) {
	s := token.String()
	if strings.IndexByte(s, 0) >= 0 {
		return "", errNullCharacter
	}
	return s, nil
}

// number parses an integer of the contract: an int64 without fraction and exponent. Any other number becomes a value
// that every schema rejects: the largest float if it is out of range, otherwise a fraction.
func number(text string) any {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return n
	case !errors.Is(err, strconv.ErrRange):
		return 1.5
	case text[0] == '-':
		return -math.MaxFloat64
	default:
		return math.MaxFloat64
	}
}
