package sandbox_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"example.com/orders/internal/sandbox"
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

// Ensure the state file is private and that no temporary file stays behind.
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

// Ensure a file that is not ours, or a place that cannot be written, refuses to start and is left alone.
func TestBadStateFile(t *testing.T) {
	t.Parallel()
	alien := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(alien, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{alien, filepath.Join(t.TempDir(), "missing", "sandbox.json"), t.TempDir()} {
		if _, err := sandbox.New(sandbox.Config{Issuer: "i", Audience: "a", StateFile: path}); err == nil {
			t.Errorf("started on %s", path)
		}
	}
	data, _ := os.ReadFile(alien)
	equal(t, "content", string(data), "mine")
}
