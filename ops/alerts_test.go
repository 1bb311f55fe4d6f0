package ops

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) (rules []rule) {
	t.Helper()
	text, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

func still(v float64) func(time.Duration) float64 { return func(time.Duration) float64 { return v } }

// appeared is a counter that showed up with n, five minutes ago.
func appeared(n float64) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		if since < history-5*time.Minute {
			return math.NaN() // not there
		}
		return n
	}
}

func growing(v float64) func(time.Duration) float64 { return course(v, true) }

// Metrics that count runs of something.
const (
	requests = "orders_request_duration_seconds_count"
	calls    = "orders_provider_call_duration_seconds_count"
	runs     = "orders_job_duration_seconds_count"
	jobs     = "orders_outbox_jobs"
	findings = "orders_payment_findings_total"
)

// healthy is the service of the readings on a good day: what went wrong in the story happens no more.
func healthy(t *testing.T) *world {
	t.Helper()
	w := readWorld(t)
	for _, s := range w.series {
		code, outcome := s.labels.Get("code"), s.labels.Get("outcome")
		if code != "" && code != "ok" || slices.Contains([]string{"unknown", "key_unusable", "again"}, outcome) {
			w = w.with(s.labels.Get("__name__"), selectorOf(s), still(s.value(time.Minute)))
		}
	}
	return w.with(jobs, "state=available", still(3)).with("orders_db_connections", "state=used", still(5))
}

func selectorOf(s series) string {
	var pairs []string
	for _, name := range []string{"code", "operation", "outcome", "call", "kind", "le"} {
		if v := s.labels.Get(name); v != "" {
			pairs = append(pairs, name+"="+v)
		}
	}
	return strings.Join(pairs, ",")
}

// troubles makes each alert's trouble happen to a healthy service.
var troubles = map[string]func(*world) *world{
	"OrdersPaymentsRefused": func(w *world) *world { return w.with("orders_payments_open", "status=refused", still(1)) },
	"OrdersPaymentsUndecided": func(w *world) *world {
		return w.with("orders_payments_oldest_age_seconds", "", still(3600))
	},
	"OrdersPaymentsLate": func(w *world) *world {
		return w.with("orders_outbox_oldest_age_seconds", "kind=refund-charge", still(3600))
	},
	"OrdersPaymentsLostTheirJobs": func(w *world) *world { return w.with("orders_payments_reconciled_total", "", growing(1)) },
	"OrdersProviderFailing": func(w *world) *world {
		return w.with(calls, "call=confirm_intent,outcome=unknown", growing(100))
	},
	"OrdersChargesDeclined": func(w *world) *world { return w.with(findings, "kind=charge_declined", growing(100)) },
	"OrdersRefundsFailed":   func(w *world) *world { return w.with(findings, "kind=refund_failed_late", growing(0.1)) },
	"OrdersUnknownCharges": func(w *world) *world {
		return w.with("orders_charges_unmatched", "kind=unknown_charge", still(1))
	},
	"OrdersSecondCharges":       func(w *world) *world { return w.with(findings, "kind=second_charge", growing(0.1)) },
	"OrdersPaymentsUnexplained": func(w *world) *world { return w.with(findings, "kind=mismatch", growing(0.1)) },
	"OrdersDisputes":            func(w *world) *world { return w.with(findings, "kind=dispute", growing(0.1)) },
	"OrdersOutboxGrowing":       func(w *world) *world { return w.with(jobs, "state=retryable", growing(10)) },
	"OrdersWorkersStuck": func(w *world) *world {
		return w.with(runs, "kind=charge-order", still(9)).with(runs, "kind=refund-charge", still(9)).
			with(runs, "kind=settle-payment", still(9))
	},
	"OrdersWorkersGone":   func(w *world) *world { return w.without(jobs) },
	"OrdersJobsDiscarded": func(w *world) *world { return w.with(jobs, "state=discarded", still(1)) },
	"OrdersServerErrors":  func(w *world) *world { return w.with(requests, "code=try_again,operation=place-order", growing(100)) },
	"OrdersBug": func(w *world) *world {
		return w.with(requests, "code=internal_error,operation=place-order", growing(0.1))
	},
	"OrdersDatabaseReadOnly": func(w *world) *world { return w.with("orders_db_writable", "", still(0)) },
	"OrdersPoolExhausted": func(w *world) *world {
		return w.with("orders_db_connections", "state=used,pool=orders-api", still(8))
	},
	"OrdersVersionConflicts": func(w *world) *world {
		return w.with(requests, "code=version_conflict,operation=ship-order", growing(10))
	},
	"OrdersKeysReused": func(w *world) *world {
		return w.with(requests, "code=idempotency_key_reused,operation=place-order", growing(0.1))
	},
	"OrdersProviderEventsRefused": func(w *world) *world {
		return w.with(requests, "code=invalid_signature,operation=receive-provider-event", growing(10))
	},
	"OrdersPurgeFailing": func(w *world) *world {
		return w.with("orders_idempotency_purge_failures_total", "", growing(0.1))
	},
	"OrdersKeyTableGrowing": func(w *world) *world {
		return w.with("orders_idempotency_keys_oldest_expired_age_seconds", "", still(86400))
	},
}

// Ensure every alert is silent while the service is well, fires when its trouble is there, and is the only one that does.
func TestAlertsFireOnTheirTroubleOnly(t *testing.T) {
	t.Parallel()
	rules := alerts(t)
	if len(rules) != len(troubles) {
		t.Errorf("%d alerts, %d troubles", len(rules), len(troubles))
	}
	for _, r := range rules {
		trouble, ok := troubles[r.Alert]
		if !ok {
			t.Errorf("no trouble for %s", r.Alert)
			continue
		}
		t.Run(r.Alert, func(t *testing.T) {
			t.Parallel()
			well := healthy(t)
			if fired := well.ask(t, r.Expr); len(fired) > 0 {
				t.Errorf("fires on a healthy service: %v", fired)
			}
			ill := trouble(well)
			for _, other := range rules {
				if fires := len(ill.ask(t, other.Expr)) > 0; fires != (other.Alert == r.Alert) {
					t.Errorf("trouble of %s: %s fires: %v", r.Alert, other.Alert, fires)
				}
			}
		})
	}
}

// Ensure an alert that watches several things fires on each of them.
func TestAlertsFireOnEachTrouble(t *testing.T) {
	t.Parallel()
	further := map[string][]func(*world) *world{
		"OrdersPaymentsRefused": {func(w *world) *world { return w.with(findings, "kind=refund_refused", growing(0.1)) }},
		"OrdersProviderFailing": {
			func(w *world) *world { return w.with(calls, "call=create_intent,outcome=refused", growing(100)) },
			func(w *world) *world { return w.with(calls, "call=create_refund,outcome=key_unusable", growing(100)) },
		},
		"OrdersRefundsFailed": {func(w *world) *world { return w.with(findings, "kind=refund_failed", growing(0.1)) }},
		"OrdersPaymentsUnexplained": {
			func(w *world) *world { return w.with(findings, "kind=late_charge", growing(0.1)) },
			func(w *world) *world { return w.with(findings, "kind=refund_unexplained", growing(0.1)) },
		},
	}
	for _, r := range alerts(t) {
		for i, happen := range further[r.Alert] {
			if len(happen(healthy(t)).ask(t, r.Expr)) == 0 {
				t.Errorf("%s misses its trouble %d", r.Alert, i+2)
			}
		}
	}
}

// Ensure an alert on single events does not miss the first, which makes the series that it looks at.
func TestAlertsFireOnTheFirstEvent(t *testing.T) {
	t.Parallel()
	first := map[string]func(*world) *world{
		"OrdersBug": func(w *world) *world {
			return w.with(requests, "code=internal_error,operation=place-order", appeared(1))
		},
	}
	for _, r := range alerts(t) {
		if happen := first[r.Alert]; happen != nil && len(happen(healthy(t)).ask(t, r.Expr)) == 0 {
			t.Errorf("%s misses the first event", r.Alert)
		}
	}
}

// Ensure every metric and label that an alert names is one that the service shows, and that it says how bad it is and
// which runbook to open.
func TestAlertsNameWhatTheServiceShows(t *testing.T) {
	t.Parallel()
	w := readWorld(t)
	for _, r := range alerts(t) {
		requireKnown(t, w, r.Expr)
		if !slices.Contains([]string{"page", "ticket", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
		if r.For != "" {
			if _, err := time.ParseDuration(r.For); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
		if _, err := os.Stat(filepath.Join("..", r.Annotations["runbook"])); err != nil || r.Annotations["runbook"] == "" {
			t.Errorf("%s: runbook: %v", r.Alert, err)
		}
	}
}
