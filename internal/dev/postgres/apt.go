package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// clusterConf keeps Debian's package from making, and starting, a cluster of its own.
const clusterConf = "/etc/postgresql-common/createcluster.d/embedded-postgres.conf"

// aptInstall installs Debian's package.
func aptInstall(ctx context.Context, log io.Writer) error {
	if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
		return errors.New("not root on Debian, so no package installed")
	}
	fmt.Fprintln(log, "embedded postgres: installing PostgreSQL with apt-get install postgresql")
	return withoutCluster(func() error {
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		return apt(ctx, "install", "-y", "--no-install-recommends", "postgresql")
	})
}

// withoutCluster removes its setting again: a later installation by hand is not ours to change.
func withoutCluster(install func() error) error {
	if err := os.MkdirAll(filepath.Dir(clusterConf), 0o755); err != nil {
		return fmt.Errorf("install PostgreSQL: %w", err)
	}
	if err := os.WriteFile(clusterConf, []byte("create_main_cluster = false\n"), 0o644); err != nil {
		return fmt.Errorf("install PostgreSQL: %w", err)
	}
	return errors.Join(install(), os.Remove(clusterConf))
}

func apt(ctx context.Context, args ...string) error {
	out := &tail{}
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=60"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
	}
	return nil
}
