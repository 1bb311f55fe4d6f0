package scenario

// rules states provisions of the standard (litespec/ext/concurrency), each in a sentence of our own, by the last part of its
// id.
var rules = map[string]string{
	"replay-completed-results":           "A retry of a request that was accepted gets the same status and the same bytes.",
	"store-idempotency-state-atomically": "The answer is stored in the transaction that makes the change: both, or neither.",
	"reload-concurrent-winners":          "Of requests that arrive together one works; the others read its answer and give it too.",
	"enforce-key-uniqueness":             "A unique index admits one request for each tenant, actor, operation and key.",
	"define-concurrent-retry-behavior":   "Each operation's record says what a duplicate gets while the first request is at work.",
}

// RuleText is a provision in one sentence.
func RuleText(id string) string { return rules[id] }
