package lab

import (
	"net/http"

	"example.com/orders/internal/dev/scenario"
)

type scenarioView struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Promise string          `json:"promise"`
	Rules   []ruleView      `json:"rules"`
	Links   []linkView      `json:"links"`
	Knobs   []scenario.Knob `json:"knobs"`
}

type ruleView struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type linkView struct {
	Label string `json:"label"`
	Href  string `json:"href"`
}

func (l *Lab) getScenarios(w http.ResponseWriter, _ *http.Request) {
	all := []scenarioView{}
	for _, s := range scenario.All() {
		all = append(all, l.viewScenario(s))
	}
	reply(w, http.StatusOK, map[string]any{"scenarios": all})
}

func (l *Lab) viewScenario(s scenario.Scenario) scenarioView {
	v := scenarioView{
		ID: s.ID, Title: s.Title, Promise: s.Promise, Rules: []ruleView{}, Links: []linkView{},
		Knobs: append([]scenario.Knob{}, s.Knobs...),
	}
	for _, id := range s.Rules {
		v.Rules = append(v.Rules, ruleView{id, scenario.RuleText(id)})
	}
	for _, link := range s.Code {
		v.Links = append(v.Links, linkView{"code: " + link.Name, l.href(link)})
	}
	for _, link := range s.Tests {
		v.Links = append(v.Links, linkView{"test: " + link.Name, l.href(link)})
	}
	return v
}
