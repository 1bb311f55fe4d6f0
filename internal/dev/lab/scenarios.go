package lab

import (
	"net/http"

	"example.com/orders/internal/dev/scenario"
)

type scenarioView struct {
	ID      string     `json:"id"`
	Title   string     `json:"title"`
	Promise string     `json:"promise"`
	Rules   []ruleView `json:"rules"`
	Links   []linkView `json:"links"`
	Knobs   []knobView `json:"knobs"`
}

type ruleView struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type linkView struct {
	Label string `json:"label"`
	Href  string `json:"href"`
}

type knobView struct {
	Name    string       `json:"name"`
	Label   string       `json:"label"`
	Min     int          `json:"min"`
	Max     int          `json:"max"`
	Default int          `json:"default"`
	Choices []choiceView `json:"choices,omitempty"`
}

type choiceView struct {
	Value int    `json:"value"`
	Label string `json:"label"`
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
		ID: s.ID, Title: s.Title, Promise: s.Promise, Rules: []ruleView{}, Links: []linkView{}, Knobs: []knobView{},
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
	for _, k := range s.Knobs {
		knob := knobView{Name: k.Name, Label: k.Label, Min: k.Min, Max: k.Max, Default: k.Default}
		for _, c := range k.Choices {
			knob.Choices = append(knob.Choices, choiceView(c))
		}
		v.Knobs = append(v.Knobs, knob)
	}
	return v
}
