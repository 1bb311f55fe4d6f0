// Package config reads the environment variables, with defaults and bounds. They are checked at start: invalid values
// stop the process with one line that names every invalid variable.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lookup finds the value of an environment variable, as os.LookupEnv does.
type Lookup func(name string) (value string, ok bool)

// reader collects all mistakes. For an invalid value it returns the default.
type reader struct {
	lookup   Lookup
	mistakes []string
}

// value returns a variable's text; an empty one counts as not set.
func (r *reader) value(name string) (string, bool) {
	v, ok := r.lookup(name)
	return v, ok && v != ""
}

func (r *reader) fail(name, format string, args ...any) {
	r.mistakes = append(r.mistakes, fmt.Sprintf(name+" "+format, args...))
}

// relate refuses a value that contradicts another one. It does nothing if there are mistakes already, because one of
// the two values may be invalid.
func (r *reader) relate(ok bool, name, format string, args ...any) {
	if !ok && len(r.mistakes) == 0 {
		r.fail(name, format, args...)
	}
}

// err is one line with all mistakes, or nil.
func (r *reader) err() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	return errors.New(strings.Join(r.mistakes, "; "))
}

func (r *reader) text(name, fallback string) string {
	if v, ok := r.value(name); ok {
		return v
	}
	return fallback
}

func (r *reader) required(name string) string {
	v, ok := r.value(name)
	if !ok {
		r.fail(name, "is not set")
	}
	return v
}

// secrets reads a secret and, while it is rotated, the next one.
func (r *reader) secrets(name, next string) []string {
	list := []string{r.required(name)}
	if v, ok := r.value(next); ok {
		list = append(list, v)
	}
	return list
}

// duration reads a time such as 90s or 72h between least and most.
func (r *reader) duration(name string, fallback, least, most time.Duration) time.Duration {
	v, ok := r.value(name)
	if !ok {
		return fallback
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		r.fail(name, "must be a duration of %s to %s, such as %s; it is %q", least, most, fallback, v)
		return fallback
	}
	return d
}

// count reads a whole number between least and most.
func (r *reader) count(name string, fallback, least, most int) int {
	v, ok := r.value(name)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		r.fail(name, "must be a whole number of %d to %d; it is %q", least, most, v)
		return fallback
	}
	return n
}

// choice reads one of a few words; the first is the default.
func (r *reader) choice(name string, words ...string) string {
	v := r.text(name, words[0])
	if !slices.Contains(words, v) {
		r.fail(name, "must be one of %s; it is %q", strings.Join(words, ", "), v)
	}
	return v
}

// address reads host:port.
func (r *reader) address(name, fallback string) string {
	v := r.text(name, fallback)
	_, port, err := net.SplitHostPort(v)
	if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
		r.fail(name, "must be host:port; it is %q", v)
	}
	return v
}

// networks reads a list of networks in CIDR notation, which may be empty.
func (r *reader) networks(name string) (networks []netip.Prefix) {
	v, _ := r.value(name)
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		network, err := netip.ParsePrefix(part)
		if err != nil || network != network.Masked() {
			r.fail(name, "must be networks such as 10.0.0.0/8,fd00::/8; it is %q", v)
			return nil
		}
		networks = append(networks, network)
	}
	return networks
}

// webURL reads an absolute http or https URL, or nothing where it is optional.
func (r *reader) webURL(name string, optional bool) string {
	v := r.text(name, "")
	if v == "" {
		if !optional {
			r.fail(name, "is not set")
		}
		return v
	}
	if err := CheckWebURL(name, v); err != nil {
		r.mistakes = append(r.mistakes, err.Error())
	}
	return v
}

// Switch reads a variable that is on or off: 1 or true, 0 or false; not set, it is off. Any other word is an error, so
// that EPHEMERAL=yes is not read as off.
func Switch(lookup Lookup, name string) (bool, error) {
	switch v, _ := lookup(name); v {
	case "1", "true":
		return true, nil
	case "", "0", "false":
		return false, nil
	default:
		return false, fmt.Errorf("%s must be 1, true, 0 or false; it is %q", name, v)
	}
}

// CheckWebURL returns an error unless the value is an absolute http or https URL.
func CheckWebURL(name, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s must be an http or https URL; it is %q", name, value)
	}
	return nil
}

// postgresURL reads a postgres:// URL. Errors never quote the value, because it contains a password.
func (r *reader) postgresURL(name string) string {
	v := r.required(name)
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql") {
		r.fail(name, "must be a postgres:// URL")
	}
	return v
}
