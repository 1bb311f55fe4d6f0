package domain

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pictures and tables of docs/state-machines.md anew")

const (
	page  = "../../docs/state-machines.md"
	begin = "<!-- begin generated: go test ./internal/domain -run TestStateMachinesPage -update -->\n"
	end   = "<!-- end generated -->\n"
)

// Ensure docs/state-machines.md shows the transitions that the code has, and no others.
func TestStateMachinesPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, "no begin mark")
	tables, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "no end mark")
	want := stateTables()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644))
		return
	}
	require.Equal(t, want, tables, "run: go test ./internal/domain -run TestStateMachinesPage -update")
}

func stateTables() string {
	return "\n## Order\n\n" + orderDiagram() + "\n" + orderTable() +
		"\n## Payment\n\n" + diagram(PaymentPending, sortedKeys(paymentTransitions()), mayPay) + "\n" + paymentTable() +
		"\n## Refund\n\n" + diagram(RefundPending, refundStates(), maySettle) + "\n" + refundTable() + "\n"
}

// orderDiagram draws the state machine of an order; what an arrow says is the operation.
func orderDiagram() string {
	lines := []string{"[*] --> " + string(OrderOpen) + ": place-order"}
	for _, from := range sortedKeys(orderTransitions()) {
		for _, a := range orderActions() {
			if to, ok := orderTransitions()[from][a]; ok {
				lines = append(lines, string(from)+" --> "+string(to)+": "+a.Operation)
			}
		}
	}
	return mermaid(lines)
}

// diagram draws a state machine from the state that it begins in.
func diagram[S ~string](first S, states []S, allowed func(from, to S) bool) string {
	lines := []string{"[*] --> " + string(first)}
	for _, from := range states {
		for _, to := range states {
			if allowed(from, to) {
				lines = append(lines, string(from)+" --> "+string(to))
			}
		}
	}
	return mermaid(lines)
}

func mermaid(lines []string) string {
	return "```mermaid\nstateDiagram-v2\n    direction LR\n    " + strings.Join(lines, "\n    ") + "\n```\n"
}

func orderTable() string {
	actions := orderActions()
	rows := [][]string{{"state"}}
	for _, a := range actions {
		rows[0] = append(rows[0], a.Operation)
	}
	for _, s := range sortedKeys(orderTransitions()) {
		row := []string{code(s)}
		for _, a := range actions {
			row = append(row, afterAction(s, a))
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// orderActions is every action of the state machine, in the order of the alphabet.
func orderActions() []Action {
	var actions []Action
	for _, after := range orderTransitions() {
		for a := range after {
			if !slices.Contains(actions, a) {
				actions = append(actions, a)
			}
		}
	}
	slices.SortFunc(actions, func(a, b Action) int { return strings.Compare(a.Operation, b.Operation) })
	return actions
}

// Ensure every action has a refusal of its own: a caller that is told address_not_changeable when it asked for a
// shipment would look for its fault in the wrong place.
func TestEveryActionHasARefusalOfItsOwn(t *testing.T) {
	t.Parallel()
	byCode, byOperation := map[Code]Action{}, map[string]Action{}
	for _, a := range orderActions() {
		require.NotEmpty(t, a.refusal, a.Operation)
		require.NotEmpty(t, a.sentence, a.Operation)
		require.NotContains(t, byCode, a.refusal, a.Operation)
		require.NotContains(t, byOperation, a.Operation)
		byCode[a.refusal], byOperation[a.Operation] = a, a
		for s := range orderTransitions() {
			if refused, ok := errors.AsType[*Error](s.allows(a)); ok {
				require.Equal(t, a.refusal, refused.Code)
				require.Equal(t, "The order is "+string(s)+" and "+a.sentence, refused.Message)
			}
		}
	}
}

// afterAction is the state after an action, or the code of its refusal.
func afterAction(s OrderStatus, a Action) string {
	if refused, ok := errors.AsType[*Error](s.allows(a)); ok {
		return "409 " + code(refused.Code)
	}
	return "→ " + code(orderTransitions()[s][a])
}

func paymentTable() string { return matrix(sortedKeys(paymentTransitions()), mayPay) }

func mayPay(from, to PaymentStatus) bool { return slices.Contains(paymentTransitions()[from], to) }

func refundTable() string { return matrix(refundStates(), maySettle) }

func refundStates() []RefundStatus {
	return []RefundStatus{RefundPending, RefundSucceeded, RefundFailed}
}

func maySettle(from, to RefundStatus) bool {
	id := uuid.Max
	p := RestorePayment(PaymentState{Status: PaymentSucceeded, Refunds: []Refund{{ID: id, Status: from}}})
	return p.SettleRefund(id, to, "re_1", time.Time{}) == nil
}

// matrix shows which state may follow which.
func matrix[S ~string](states []S, allowed func(from, to S) bool) string {
	rows := [][]string{{"from \\ to"}}
	for _, s := range states {
		rows[0] = append(rows[0], code(s))
	}
	for _, from := range states {
		row := []string{code(from)}
		for _, to := range states {
			row = append(row, map[bool]string{true: "yes", false: "–"}[allowed(from, to)])
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// table writes rows in Markdown; the first one is the heading.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}

func code[S ~string](s S) string { return "`" + string(s) + "`" }

// sortedKeys is the states of a machine in the order of the alphabet, so that the page does not change by chance.
func sortedKeys[S ~string, V any](machine map[S]V) []S {
	states := make([]S, 0, len(machine))
	for s := range machine {
		states = append(states, s)
	}
	slices.Sort(states)
	return states
}
