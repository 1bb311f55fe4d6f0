package scenario

// All returns every scenario, in the order of the tour.
func All() []Scenario {
	return []Scenario{
		{
			ID: "lost-answer", Title: "Lose the answer and try again",
			Promise: "the retry gets the first answer; nothing happens twice",
			Rules:   []string{"replay-completed-results", "store-idempotency-state-atomically"},
			Code:    []Link{{"internal/httpapi/reply.go", "reply) write"}},
			Tests:   []Link{{"internal/e2e/idempotency_replay_test.go", "TestIdempotencyAReplayIsTheOriginalAfterTheOrderWasShipped"}},
			run:     lostAnswer,
		},
		{
			ID: "duplicates-at-once", Title: "Duplicates at once",
			Promise: "one of them works, the others get its answer, byte for byte",
			Rules:   []string{"reload-concurrent-winners", "enforce-key-uniqueness", "define-concurrent-retry-behavior"},
			Code:    []Link{{"internal/infra/postgres/idempotency.go", "InKeyedTx"}},
			Tests:   []Link{{"internal/e2e/idempotency_duplicates_test.go", "TestIdempotencyTwentyDuplicatesMakeOneOrder"}},
			Knobs:   []Knob{{Name: "duplicates", Label: "duplicates", Min: 2, Max: 50, Default: 20}},
			run:     duplicatesAtOnce,
		},
	}
}
