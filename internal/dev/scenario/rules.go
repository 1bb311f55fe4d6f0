package scenario

// RuleText states a provision of the standard (litespec/ext/concurrency) in a sentence of our own. id is the last part of
// its id.
func RuleText(id string) string {
	return map[string]string{
		"apply-http-version-preconditions": "An answer carries the version as a strong ETag, and a write carries it back in If-Match.",
		"canonicalize-request-fingerprints": "A fingerprint is made of the mapped command, the route and the actor: other spacing is the same request, " +
			"another quantity is not.",
		"compare-expected-aggregate-versions":     "The version that the caller saw is compared in the transaction that makes the change.",
		"define-concurrent-retry-behavior":        "Each operation's record says what a duplicate gets while the first request is at work: here it waits.",
		"delay-irreversible-provider-calls":       "No card is charged before the order has been committed.",
		"document-write-conflict-behavior":        "Each pair of conflicting operations has a record: what must not come of it, who wins, what the loser is told.",
		"enforce-key-uniqueness":                  "A unique index admits one request for each tenant, actor, operation and key.",
		"limit-version-checks":                    "A caller must send a version only where two writes can conflict; stock and refunds just add up.",
		"map-failed-expected-versions":            "A stale version is answered with 409 and a code that does not change.",
		"reject-conflicting-key-reuse":            "A key that comes back with another request is refused.",
		"reject-silent-overwrites":                "No accepted change is overwritten by a writer who has not seen it.",
		"reload-concurrent-winners":               "Of requests that arrive together one works; the others read its answer and give it too.",
		"replay-completed-results":                "A retry of an accepted request gets the same status and the same bytes.",
		"retain-safe-retry-keys":                  "A key lives longer than its caller may go on trying.",
		"return-precondition-outcomes":            "Without If-Match the answer is 428, with a stale one it is 409.",
		"route-required-external-effects-durably": "The charge is a job in the order's own transaction, so it happens if the order does, whatever crashes.",
		"scope-client-keys":                       "A key belongs to its tenant, its actor and its operation.",
		"set-key-retention":                       "How long a key is kept is a setting with a reason: the caller's retry window and the risk of a late duplicate.",
		"store-idempotency-state-atomically":      "The answer is stored in the transaction that makes the change: both, or neither.",
	}[id]
}
