package sandbox

import (
	"math"
	"net/http"
	"slices"
)

// searchIntents answers with what was known a lag ago: https://docs.stripe.com/search#data-freshness.
func (s *Sandbox) searchIntents(c call) answer {
	p := params{form: c.form}
	p.only("query", "limit", "page")
	limit := p.limit()
	terms, ok := parseQuery(p.required("query"))
	if !ok {
		p.refuse("", "query", "The sandbox searches for metadata['name']:'value' and status:'value', joined by AND.")
	}
	cursor := p.form.Get("page")
	if cursor != "" && s.state.intents.get(cursor) == nil {
		p.refuse("", "page", "Invalid page.")
	}
	if p.err != nil {
		return p.err.answer("")
	}
	found := s.find(terms, cursor, limit+1)
	result := page{Object: "search_result", URL: c.req.URL.Path, Data: found[:min(limit, len(found))]}
	if len(found) > limit {
		result.HasMore, result.NextPage = true, new(found[limit-1].ID)
	}
	return jsonAnswer(http.StatusOK, result)
}

// find returns up to limit intents that match, the newest first, those older than the cursor only.
func (s *Sandbox) find(terms terms, cursor string, limit int) []*intent {
	moment := s.now().Add(-max(s.cfg.SearchLag, 0))
	before := math.MaxInt
	if cursor != "" {
		before = s.state.intents.at[cursor]
	}
	found := []*intent{}
	look := func(id string) bool {
		if s.state.intents.at[id] >= before {
			return true
		}
		if pi := s.state.asOf(id, moment); pi != nil && terms.match(pi) {
			found = append(found, pi)
		}
		return len(found) < limit
	}
	if ids, ok := s.candidates(terms); ok {
		for _, id := range slices.Backward(ids) {
			if !look(id) {
				break
			}
		}
		return found
	}
	for _, pi := range slices.Backward(s.state.intents.items) {
		if !look(pi.ID) {
			break
		}
	}
	return found
}

// candidates are the intents that can match: those of the metadata that the fewest have. Without a term for metadata,
// all can.
func (s *Sandbox) candidates(terms terms) (ids []string, ok bool) {
	for _, t := range terms {
		if t.metadata == "" {
			continue
		}
		if of := s.state.byMeta[metaKey(t.metadata, t.value)]; !ok || len(of) < len(ids) {
			ids, ok = of, true
		}
	}
	return ids, ok
}
