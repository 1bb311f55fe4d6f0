package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ensure scripts/pin-images.sh pins every image from elsewhere, pins it anew when it is run again, leaves all else as it is,
// and fails where the registry gives no digest.
func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	files := []string{"Dockerfile", ".devcontainer/Dockerfile", "docker-compose.yml", "scripts/pin-images.sh"}
	clone := t.TempDir()
	before := map[string]string{}
	for _, name := range files {
		raw, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(clone, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(clone, name), raw, 0o755))
		before[name] = string(raw)
	}
	pin := func(digest string) error {
		tools := t.TempDir()
		docker := "#!/bin/sh\necho '" + digest + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(tools, "docker"), []byte(docker), 0o755))
		c := exec.Command(filepath.Join(clone, "scripts/pin-images.sh"))
		c.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		return c.Run()
	}
	pins := regexp.MustCompile(`@sha256:[0-9a-f]{64}`)
	for _, digit := range []string{"a", "b"} {
		digest := "sha256:" + strings.Repeat(digit, 64)
		require.NoError(t, pin(digest))
		for name, text := range before {
			raw, err := os.ReadFile(filepath.Join(clone, name))
			require.NoError(t, err)
			require.Equal(t, pins.ReplaceAllString(text, ""), pins.ReplaceAllString(string(raw), ""), name)
			for _, m := range regexp.MustCompile(`(?m)^(?:FROM| *image:) +(\S+:\S+)`).FindAllStringSubmatch(string(raw), -1) {
				require.True(t, strings.HasSuffix(m[1], "@"+digest), m[1])
			}
		}
	}
	require.Error(t, pin("not found"))
}
