package deploy

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const overlay = "deploy/kubernetes/overlays/example"

// stubs are the programs that scripts/pin-images.sh asks. The digest depends on the image, and on SALT.
func stubs() map[string]string {
	answer := `[ -n "$SALT" ] && echo "sha256:$(printf '%s' "$SALT $image" | sha256sum | cut -d' ' -f1)"`
	return map[string]string{
		"docker": `[ "$2" = version ] && exit; [ "$1 $2 $3" = "buildx imagetools inspect" ] && image=$4 && ` + answer,
		"crane":  `[ "$1" = digest ] && image=$2 && ` + answer,
	}
}

// pinning is a copy of what scripts/pin-images.sh reads and writes.
type pinning struct{ root, stub string }

var pinned = []string{"Dockerfile", ".devcontainer/Dockerfile", "docker-compose.yml", overlay + "/kustomization.yaml"}

func newPinning(t testing.TB, stub string) pinning {
	t.Helper()
	p := pinning{t.TempDir(), stub}
	for _, name := range append([]string{"scripts/pin-images.sh"}, pinned...) {
		raw, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		p.write(t, name, string(raw))
	}
	p.write(t, "bin/docker", "#!/bin/sh\nexit 1\n") // one without buildx
	p.write(t, "bin/"+stub, "#!/bin/sh\n"+stubs()[stub]+"\n")
	return p
}

func (p pinning) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(p.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

func (p pinning) files(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, name := range pinned {
		raw, err := os.ReadFile(filepath.Join(p.root, name))
		require.NoError(t, err)
		all.Write(raw)
	}
	return all.String()
}

func (p pinning) run(salt string, args ...string) error {
	c := exec.Command(filepath.Join(p.root, "scripts/pin-images.sh"), args...)
	c.Env = append(os.Environ(), "PATH="+filepath.Join(p.root, "bin")+":"+os.Getenv("PATH"), "SALT="+salt)
	return c.Run()
}

// Ensure scripts/pin-images.sh pins every image from elsewhere and, in an overlay, each of the service's own, to its digest;
// moves the digests when it is run again; leaves all else as it is; and changes nothing where a digest is not to be had.
func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	pins := regexp.MustCompile(`@sha256:[0-9a-f]{64}|, digest: sha256:[0-9a-f]{64}`)
	image := regexp.MustCompile(`(?m)^(?:FROM| *image:) +([^\s@]+:[^\s@]+)(?:@(\S+))?|newName: ([^ ,]+), newTag: "([^"]+)"(?:, digest: ([^}]+))?}`)
	for stub := range stubs() {
		p := newPinning(t, stub)
		before := p.files(t)
		for _, salt := range []string{"first", "second"} {
			require.NoError(t, p.run(salt), stub)
			require.NoError(t, p.run(salt, overlay), stub)
			after := p.files(t)
			require.Equal(t, pins.ReplaceAllString(before, ""), pins.ReplaceAllString(after, ""), stub)
			found := image.FindAllStringSubmatch(after, -1)
			require.Len(t, found, 6, "golang twice, postgres, and api, worker and migrate of the overlay")
			for _, m := range found {
				name, digest := m[1], m[2]
				require.NotContains(t, name, "/", "an image that needs no registry's name")
				if name == "" {
					name, digest = m[3]+":"+m[4], m[5]
				}
				require.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(salt+" "+name))), digest, "%s: %s", stub, name)
			}
		}
		after := p.files(t)
		require.Error(t, p.run(""), stub)
		require.Error(t, p.run("", overlay), stub)
		require.Error(t, p.run("third", "deploy/kubernetes/overlays"), "there is no overlay")
		require.Equal(t, after, p.files(t), stub)
	}
}
