package sandbox

import "net/http"

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

// listAnswer shows a part of a list.
func listAnswer[T object](c call, kind string, list *series[T], q paging, keep func(T) bool) answer {
	items, more, found := list.page(q, keep)
	if !found {
		return invalid("resource_missing", "starting_after", "No such "+kind+": '"+q.after+"'").answer("")
	}
	return jsonAnswer(http.StatusOK, page{Object: "list", URL: c.req.URL.Path, HasMore: more, Data: items})
}

func (s *Sandbox) getIntent(c call) answer {
	id := c.req.PathValue("id")
	if pi := s.state.intents.get(id); pi != nil {
		return jsonAnswer(http.StatusOK, pi)
	}
	return notFound("payment_intent", id, "intent").answer("")
}

func (s *Sandbox) listIntents(c call) answer {
	p := params{form: c.form}
	p.only(pagingParams()...)
	q := p.paging()
	if p.err != nil {
		return p.err.answer("")
	}
	return listAnswer(c, "payment_intent", &s.state.intents, q, nil)
}

func (s *Sandbox) getRefund(c call) answer {
	id := c.req.PathValue("id")
	r := s.state.refunds.get(id)
	if r == nil {
		return notFound("refund", id, "id").answer("")
	}
	return jsonAnswer(http.StatusOK, s.seen([]*refund{r})[0])
}

// listRefunds shows the refunds of an intent, or all.
func (s *Sandbox) listRefunds(c call) answer {
	p := params{form: c.form}
	p.only(append(pagingParams(), "payment_intent")...)
	q := p.paging()
	if p.err != nil {
		return p.err.answer("")
	}
	list := &s.state.refunds
	if of := c.form.Get("payment_intent"); of != "" {
		list = new(series[*refund])
		for _, id := range s.state.refundsOf[of] {
			list.put(s.state.refunds.get(id))
		}
	}
	items, _, _ := list.page(q, nil)
	for _, r := range s.seen(items) {
		list.put(r)
	}
	return listAnswer(c, "refund", list, q, nil)
}

// seen moves the refunds on that are not yet what their card says they become: their first reader finds them so.
func (s *Sandbox) seen(refunds []*refund) []*refund {
	out := make([]*refund, 0, len(refunds))
	c := s.begin()
	for _, r := range refunds {
		if s.state.unsettled(r) {
			r = c.settle(r, s.state.intents.get(r.PaymentIntent).card().refundEnds)
		}
		out = append(out, r)
	}
	if len(c.entry.Refunds) > 0 {
		s.commit(c)
	}
	return out
}
