package sandbox

import "regexp"

// terms are the clauses of a search, all of which must hold.
type terms []term

// term asks for a metadata value or, when metadata is empty, for a status.
type term struct{ metadata, value string }

// One clause, and what joins it to the next: metadata['name']:'value' or status:'value', in either kind of quotes.
var (
	clause = regexp.MustCompile(`^\s*(?:status|metadata\[(?:'([^']+)'|"([^"]+)")\]):` +
		`(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")`)
	joiner  = regexp.MustCompile(`^\s+(?i:AND)\s`)
	blank   = regexp.MustCompile(`^\s*$`)
	escaped = regexp.MustCompile(`\\(.)`)
)

// parseQuery reads the part of Stripe's search language that this project uses, and refuses all else.
func parseQuery(query string) (terms, bool) {
	var out terms
	for {
		m := clause.FindStringSubmatch(query)
		if m == nil {
			return nil, false
		}
		out = append(out, term{metadata: m[1] + m[2], value: escaped.ReplaceAllString(m[3]+m[4], "$1")})
		query = query[len(m[0]):]
		if blank.MatchString(query) {
			return out, true
		}
		join := joiner.FindString(query)
		if join == "" {
			return nil, false
		}
		query = query[len(join):]
	}
}

func (ts terms) match(pi *intent) bool {
	for _, t := range ts {
		if t.metadata == "" && pi.Status != t.value {
			return false
		}
		if value, ok := pi.Metadata[t.metadata]; t.metadata != "" && (!ok || value != t.value) {
			return false
		}
	}
	return true
}
