package scenario

// RuleText states a provision of the standard (litespec/ext/concurrency) in a sentence of our own. id is the last part of
// its id.
func RuleText(id string) string {
	return map[string]string{
		"apply-http-version-preconditions": "A response has the version as a strong ETag, and a write sends it back in If-Match.",
		"canonicalize-request-fingerprints": "The fingerprint covers the mapped command, the route and the actor, so white space does not change it, " +
			"but a different quantity does.",
		"compare-expected-aggregate-versions":     "The version that the caller read is compared in the transaction that makes the change.",
		"define-concurrent-retry-behavior":        "Each operation's record states what a duplicate gets while the first request is running: it waits.",
		"delay-irreversible-provider-calls":       "A card is charged only after the order has been committed.",
		"document-write-conflict-behavior":        "Each pair of conflicting operations has a record: the invalid result, which operation wins, and the error that the loser gets.",
		"enforce-key-uniqueness":                  "A unique index accepts one request per tenant, actor, operation and key.",
		"limit-version-checks":                    "A caller must send a version only if two writes can conflict; stock adjustments and refunds add up, so they need none.",
		"map-failed-expected-versions":            "A stale version gives 409 with a stable problem code.",
		"reject-conflicting-key-reuse":            "A key that is reused for a different request is rejected.",
		"reject-silent-overwrites":                "A writer cannot overwrite an accepted change that it has not read.",
		"reload-concurrent-winners":               "One of several concurrent duplicates runs; the others read its stored response and return it.",
		"replay-completed-results":                "A retry of an accepted request gets the same status and the same body, byte for byte.",
		"retain-safe-retry-keys":                  "A key is kept longer than its caller may retry.",
		"return-precondition-outcomes":            "A missing If-Match gives 428, a stale one gives 409.",
		"route-required-external-effects-durably": "The charge is a job that is enqueued in the order's transaction (transactional outbox), so no crash can lose it.",
		"scope-client-keys":                       "A key is scoped to its tenant, actor and operation.",
		"set-key-retention":                       "The retention of keys is a setting, derived from the caller's retry window and the risk of a late duplicate.",
		"store-idempotency-state-atomically":      "The response is stored in the transaction that makes the change, so either both are committed or neither is.",
	}[id]
}
