package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ensure a message that repeats itself passes once in every interval and tells how often it was left out, that other
// messages are not held up by it, and that chatter below the level does not pass at all.
func TestQuietLeavesRepetitionsOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := Quiet(slog.New(slog.NewTextHandler(&out, nil)), slog.LevelWarn, time.Minute)
	now := time.Unix(0, 0)
	log.Handler().(quiet).repeated.now = func() time.Time { return now }

	for range 5 {
		log.With("client", 1).Error("fetch", "error", errors.New("down"))
	}
	log.Warn("elect")
	log.Info("chatter")
	require.Equal(t, 1, strings.Count(out.String(), "msg=fetch"))
	require.Contains(t, out.String(), "msg=elect")
	require.NotContains(t, out.String(), "chatter")
	require.NotContains(t, out.String(), "repeated")

	now = now.Add(time.Minute)
	log.Error("fetch")
	log.Error("fetch")
	require.Equal(t, 2, strings.Count(out.String(), "msg=fetch"))
	require.Contains(t, out.String(), "repeated=4")
}
