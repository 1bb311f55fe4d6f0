package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"example.com/orders/internal/dev/sandbox"
)

// Ensure a restart keeps the ledger, the keys and the signing key.
func TestStateSurvivesARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sandbox.json")
	before := setupState(t, path)
	before.clock.now = before.clock.now.Truncate(time.Second)
	pi := before.mustCharge("o1", "pm_card_pendingRefund")
	_, _ = before.charge("o2", "pm_card_chargeDeclined")
	re, err := before.refund(pi.ID, "r1", 500)
	if err != nil {
		t.Fatal(err)
	}
	token, err := before.Token("ann", "", "orders:read", time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	after := setupState(t, path)
	if got, want := after.Ledger(), before.Ledger(); !reflect.DeepEqual(got, want) {
		t.Errorf("ledger: got %+v, want %+v", got, want)
	}
	replay := after.mustCharge("o1", "pm_card_pendingRefund")
	equal(t, "replay", string(replay.LastResponse.RawJSON), string(pi.LastResponse.RawJSON))
	equal(t, "charges", len(after.Ledger().Charges), 2)
	if _, err := after.parse(token); err != nil {
		t.Errorf("token of before the restart: %v", err)
	}

	if _, err := after.stripe.V1Refunds.Retrieve(t.Context(), re.ID, nil); err != nil {
		t.Fatal(err)
	}
	third := setupState(t, path)
	equal(t, "settled refund", third.Ledger().Refunds[0].Status, "succeeded")
	third.ForgetKeys()
	fourth := setupState(t, path)
	if fourth.mustCharge("o1", "pm_card_pendingRefund").ID == pi.ID {
		t.Error("forgotten keys came back with the restart")
	}
}

// Ensure the state file is private, and the only one.
func TestStateFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := setupState(t, filepath.Join(dir, "sandbox.json"))
	b.mustCharge("o1", "pm_card_visa")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "files", len(files), 1)
	info, err := files[0].Info()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "mode", info.Mode().Perm(), 0o600)
}

// Ensure a file that is not ours, one that is damaged in its midst, or a place that cannot be written, refuses to start
// and is left alone.
func TestBadStateFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"notes": "mine", "other": `{"payment_intents":[],"keys":{}}`, "header": `{"sandbox_state":2}`,
		"damaged": `{"sandbox_state":2}` + "\n{\"at\":\n{}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sandbox.New(sandbox.Config{Issuer: "i", Audience: "a", StateFile: path}); err == nil {
			t.Errorf("started on %s", name)
		}
		data, _ := os.ReadFile(path)
		equal(t, name, string(data), content)
	}
	for _, path := range []string{filepath.Join(dir, "missing", "sandbox.json"), dir} {
		if _, err := sandbox.New(sandbox.Config{Issuer: "i", Audience: "a", StateFile: path}); err == nil {
			t.Errorf("started on %s", path)
		}
	}
}

// Ensure a sandbox that is killed has lost nothing that it answered, and that the half line of a write that was cut short
// is passed over.
func TestStateSurvivesAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sandbox.json")
	before := setupState(t, path)
	before.mustCharge("o1", "pm_card_visa")
	pi := before.create("o2", "pm_card_visa")
	if err := before.OpenDispute(before.mustCharge("o3", "pm_card_visa").ID); err != nil {
		t.Fatal(err)
	}
	before.AdvanceClock(time.Hour)
	data, err := os.ReadFile(path) // what a killed process leaves: nothing was closed
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed.json")
	if err := os.WriteFile(killed, append(data, `{"at":"2026-01-01T00:00:00Z","payment_int`...), 0o600); err != nil {
		t.Fatal(err)
	}
	const events = "/v1/events?limit=100"
	for range 2 { // the second start reads what the first has added
		after := setupState(t, killed)
		equal(t, "ledger", len(after.Ledger().Charges), 2)
		equal(t, "intent", after.getIntent(pi.ID), before.getIntent(pi.ID))
		_, kept, _ := strings.Cut(before.get(events).body, `"data":[`)
		equal(t, "events", strings.HasSuffix(after.get(events).body, kept), true)
		_, err := after.refund(after.Ledger().Charges[1].ID, "r1", 100)
		equal(t, "dispute", stripeError(t, err).Code, stripe.ErrorCodeChargeDisputed)
		equal(t, "an hour later", after.create("later", "").Created >= pi.Created+3600, true)
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure a change costs a line, however many there were before it.
func TestStateFileGrowsByTheChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sandbox.json")
	b := setupState(t, path)
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	grow := func(order string) int64 {
		before := size()
		b.mustCharge(order, "pm_card_visa")
		return size() - before
	}
	first := grow("o000")
	for i := range 200 {
		b.mustCharge(fmt.Sprintf("o1%02d", i), "pm_card_visa")
	}
	equal(t, "the same growth", grow("o999") < first+first/10, true)
}
