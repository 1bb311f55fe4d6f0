package sandbox

import (
	"net/http"
	"slices"
	"strconv"
)

// page is Stripe's list object; a search result differs in Object and NextPage only.
type page struct {
	Object   string  `json:"object"`
	URL      string  `json:"url"`
	HasMore  bool    `json:"has_more"`
	NextPage *string `json:"next_page,omitempty"`
	Data     any     `json:"data"`
}

// read turns a look at the state into an endpoint.
func (s *Sandbox) read(look func(call) answer) func(call) answer {
	return func(c call) answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		a := look(c)
		a.outcome = outcomeRead
		return a
	}
}

func (s *Sandbox) getIntent(c call) answer {
	id := c.req.PathValue("id")
	if pi := s.state.intent(id); pi != nil {
		return jsonAnswer(http.StatusOK, pi)
	}
	return notFound("payment_intent", id, "intent").answer("")
}

func (s *Sandbox) getRefund(c call) answer {
	id := c.req.PathValue("id")
	r := s.state.refund(id)
	if r == nil {
		return notFound("refund", id, "id").answer("")
	}
	if s.state.settle(r) {
		s.commit()
	}
	return jsonAnswer(http.StatusOK, r)
}

func (s *Sandbox) listRefunds(c call) answer {
	p := params{form: c.form}
	p.only("payment_intent", "limit", "starting_after")
	limit, of, after := p.limit(), c.form.Get("payment_intent"), c.form.Get("starting_after")
	if p.err != nil {
		return p.err.answer("")
	}
	found := newest(s.state.Refunds, func(r *refund) bool { return of == "" || r.PaymentIntent == of })
	start := 0
	if after != "" {
		at := slices.IndexFunc(found, func(r *refund) bool { return r.ID == after })
		if at < 0 {
			return invalid("resource_missing", "starting_after", "No such refund: '"+after+"'").answer("")
		}
		start = at + 1
	}
	s.settleAll(found)
	shown := found[start:min(start+limit, len(found))]
	return jsonAnswer(http.StatusOK, page{
		Object: "list", URL: c.req.URL.Path, HasMore: start+limit < len(found), Data: shown,
	})
}

func (s *Sandbox) settleAll(refunds []*refund) {
	changed := false
	for _, r := range refunds {
		changed = s.state.settle(r) || changed
	}
	if changed {
		s.commit()
	}
}

// searchIntents answers at once with all that is known. Stripe's own search lags behind by up to a minute.
func (s *Sandbox) searchIntents(c call) answer {
	p := params{form: c.form}
	p.only("query", "limit", "page")
	limit := p.limit()
	terms, ok := parseQuery(p.required("query"))
	if !ok {
		p.refuse("", "query", "The sandbox searches for metadata['name']:'value' and status:'value', joined by AND.")
	}
	start, err := strconv.Atoi(c.form.Get("page"))
	if c.form.Get("page") != "" && (err != nil || start < 0) {
		p.refuse("", "page", "Invalid page.")
	}
	if p.err != nil {
		return p.err.answer("")
	}
	found := newest(s.state.Intents, terms.match)
	start = min(start, len(found))
	result := page{Object: "search_result", URL: c.req.URL.Path, Data: found[start:min(start+limit, len(found))]}
	if start+limit < len(found) {
		result.HasMore, result.NextPage = true, new(strconv.Itoa(start+limit))
	}
	return jsonAnswer(http.StatusOK, result)
}
