package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	oldModule = "example.com/orders"
	oldHost   = "orders.example.com"
)

// target is what the service will be called.
type target struct{ module, name, host string }

var (
	validModule = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_-][A-Za-z0-9._~-]*)+$`)
	validName   = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	validHost   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(:[0-9]+)?$`)

	// taken are names of databases, roles, schemas and metrics that others own, and the word that is being replaced.
	taken = []string{"go", "http", "orders", "otel", "postgres", "process", "promhttp", "public", "river", "target", "template0", "template1"}
)

// maxName leaves room for suffixes in what has 63 bytes: a DNS label, a role, a database.
const maxName = 40

// complete checks the names and derives the host where none is given.
func (to *target) complete() error {
	switch {
	case to.module == "" || to.name == "":
		return errors.New("say both: make rename MODULE=github.com/acme/billing NAME=billing")
	case !validModule.MatchString(to.module):
		return fmt.Errorf("MODULE %q is no module path that begins with a host, such as github.com/acme/billing", to.module)
	case strings.HasPrefix(to.module+"/", oldModule+"/"):
		return fmt.Errorf("MODULE %q is the template's own", to.module)
	case !validName.MatchString(to.name) || strings.Contains(to.name, "--") || len(to.name) > maxName:
		return fmt.Errorf("NAME %q is not 1 to %d of a-z, 0-9 and single inner hyphens, beginning with a letter", to.name, maxName)
	case slices.Contains(taken, to.name) || strings.HasPrefix(to.name, "pg-"):
		return fmt.Errorf("NAME %q is taken: a database, role or metric of that name belongs to another program", to.name)
	}
	if to.host == "" {
		to.host = to.name + ".example.com"
	}
	if !validHost.MatchString(to.host) {
		return fmt.Errorf("HOST %q is no host name", to.host)
	}
	return nil
}

// identifier is the name where hyphens cannot be: in SQL, metrics and environment variables.
func (to *target) identifier() string { return strings.ReplaceAll(to.name, "-", "_") }

// title is the name as words with capitals, joined by a separator.
func (to *target) title(separator string) string {
	words := strings.Split(to.name, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, separator)
}

// A place is where the name stands for the service: the name between what the pattern has in its groups.
type place struct {
	pattern *regexp.Regexp // group 1: what stands before the name; group 2: what stands after it
	name    func(to *target) string
}

func at(pattern string, name func(to *target) string) place {
	return place{regexp.MustCompile(pattern), name}
}

// places is the one list of the places where the name stands for the service.
var places = []place{
	at(`()`+regexp.QuoteMeta(oldModule)+`(\b)`, func(to *target) string { return to.module }),
	at(`()\b`+regexp.QuoteMeta(oldHost)+`(\b)`, func(to *target) string { return to.host }),

	// Programs, images, audience, application names, groups of alerts, scratch folders: orders-api.
	at(`(^|[^\w-])orders(-[a-z%"'])`, func(to *target) string { return to.name }),
	at(`()\bORDERS(-)`, func(to *target) string { return strings.ToUpper(to.name) }),
	// Roles and metrics: orders_owner, orders_request_duration_seconds. What begins with orders_te is an index of the table.
	at(`(^|\W)orders(_(?:[a-su-z("]|t[a-df-z]))`, (*target).identifier),
	at(`()\bORDERS(_)`, func(to *target) string { return strings.ToUpper(to.identifier()) }),
	// Alerts: OrdersProviderFailing.
	at(`()\bOrders([A-Z][a-z])`, func(to *target) string { return to.title("") }),
	// Instruments, attributes and tracers: "orders.request.duration", "orders/postgres".
	at(`(")orders([./][a-z])`, (*target).identifier),
	// The database, in code and in addresses.
	at(`(\b(?:Separate|URL|Migrator)\([^"\n]*")orders(")`, (*target).identifier),
	at(`(datname = '|dbname=|createdb |-d |-d, |POSTGRES_DB: |@[^\s"'/]+/|postgres://[^\s"'/]*/|postgres://|String\(\) \+ "/)orders(\b)`,
		(*target).identifier),
	at(`(?m)(^ +)orders( = host=)`, (*target).identifier),
	// Files, hosts, the realm, the project of the containers, the dashboard, titles.
	at(`()\borders(\.(?:conf|json|dump|test)\b)`, func(to *target) string { return to.name }),
	// The namespace, the ConfigMap and the label on Kubernetes.
	at(`((?m:^namespace: |^kind: Namespace\nmetadata:\n  name: |^configMapGenerator:\n  - name: )|configMapRef: \{name: |`+
		`app\.kubernetes\.io/part-of: |kubectl -n )orders(\b)`, func(to *target) string { return to.name }),
	at(`(realm="|(?m:^name: )|"uid": "|"tags": \[\s*"|Host: )orders(\b)`, func(to *target) string { return to.name }),
	at(`(\b[Tt]he )order( service\b)`, func(to *target) string { return to.name }),
	at(`()\bOrders( lab| API)`, func(to *target) string { return to.title(" ") }),
	at(`((?m:^# )|title: |"title": ")Orders(\b)`, func(to *target) string { return to.title(" ") }),
}

// rename replaces the service's name in a text.
func (to *target) rename(text string) string {
	for _, p := range places {
		text = p.pattern.ReplaceAllString(text, "${1}"+strings.ReplaceAll(p.name(to), "$", "$$")+"${2}")
	}
	return text
}

// oldName is the name in any of its forms.
var oldName = regexp.MustCompile(`orders|Orders|ORDERS|[Tt]he order service`)

// domain is the words of the sample domain that hold it. Everything else that says it names the service.
var domain = regexp.MustCompile(strings.Join([]string{
	`(?i:/v\d/+|%2F)orders`, `"/orders"`, // the resource
	`\borders:[a-z]+`,                // scopes
	`[a-z"]-orders(-do)?\b`,          // list-orders, tenant-orders, a page
	`[A-Za-z]Orders|\b[a-z]+_ORDERS`, // ListOrders
	`\borders([A-Z]|(_test)?\.go|[-/]\d)`,
	`\borders_tenant_id\w*|[0-9]_orders`,       // an index, a migration
	`\b[A-Z_]+_ORDERS\b`,                       // a number of orders, in the environment
	`(^|[^\w/@-])[Oo]rders(: |:$|[^\w/:@-]|$)`, // the word, the table, a variable
}, "|"))

// namesOldService reports whether a line says the old name and no word of the domain.
func namesOldService(line string) bool { return oldName.MatchString(domain.ReplaceAllString(line, "")) }
