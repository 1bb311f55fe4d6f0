package sandbox

import (
	"math"
	"net/http"
	"regexp"
	"slices"
)

// metadataQuery is the part of Stripe's search language that this project uses.
var metadataQuery = regexp.MustCompile(`^metadata\['([^'\\\x00]+)'\]:'([^'\\\x00]+)'$`)

// searchIntents answers with what was known a lag ago: https://docs.stripe.com/search#data-freshness.
func (s *Sandbox) searchIntents(c call) answer {
	p := params{form: c.form}
	p.only("query", "limit", "page")
	limit := p.limit()
	asked := metadataQuery.FindStringSubmatch(p.required("query"))
	if asked == nil {
		p.refuse("", "query", "The sandbox searches for metadata['name']:'value'.")
	}
	cursor := p.form.Get("page")
	if cursor != "" && s.state.intents.get(cursor) == nil {
		p.refuse("", "page", "Invalid page.")
	}
	if p.err != nil {
		return p.err.answer("")
	}
	found := s.find(metaKey(asked[1], asked[2]), cursor, limit+1)
	result := page{Object: "search_result", URL: c.req.URL.Path, Data: found[:min(limit, len(found))]}
	if len(found) > limit {
		result.HasMore, result.NextPage = true, new(found[limit-1].ID)
	}
	return jsonAnswer(http.StatusOK, result)
}

// find returns up to limit intents with the metadata, the newest first, those older than the cursor only.
func (s *Sandbox) find(metadata, cursor string, limit int) []*intent {
	moment := s.now().Add(-max(s.cfg.SearchLag, 0))
	before := math.MaxInt
	if cursor != "" {
		before = s.state.intents.at[cursor]
	}
	found := []*intent{}
	for _, id := range slices.Backward(s.state.byMeta[metadata]) {
		if s.state.intents.at[id] >= before {
			continue
		}
		if pi := s.state.asOf(id, moment); pi != nil {
			found = append(found, pi)
		}
		if len(found) == limit {
			break
		}
	}
	return found
}
