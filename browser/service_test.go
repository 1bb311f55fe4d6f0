package browser

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// service is a running `make run`, on addresses that are free and with a database that ends with it.
type service struct {
	program *exec.Cmd
	dir     string
	pages   string // the address of the lab's listener, without a slash at its end
}

// theService starts the service when the first test needs it; TestMain stops it.
var theService = sync.OnceValues(startService)

// serving is the address of the running service's pages.
func serving(t *testing.T) string {
	t.Helper()
	s, err := theService()
	if err != nil {
		t.Fatal(err)
	}
	return s.pages
}

func startService() (*service, error) {
	dir, err := os.MkdirTemp("", "orders-browser-")
	if err != nil {
		return nil, err
	}
	s := &service{dir: dir}
	started = s
	program := filepath.Join(dir, "dev")
	build := exec.Command("go", "build", "-o", program, "./cmd/dev")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build cmd/dev: %w\n%s", err, out)
	}
	s.program = exec.Command(program, "run")
	s.program.Dir = ".." // where the lab finds the source that it shows
	s.program.Env = append(os.Environ(), "EPHEMERAL=1", "API_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "SANDBOX_ADDR=127.0.0.1:0", "LAB_ADDR=127.0.0.1:0")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	s.program.Stderr = log
	out, err := s.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.program.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	go s.read(out, found)
	select {
	case s.pages = <-found:
	case <-time.After(3 * time.Minute):
	}
	if s.pages == "" {
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("cmd/dev run did not say where its lab is:\n%s", said)
	}
	return s, nil
}

// read looks for the address of the lab in what the program prints, and reads on until the program ends.
func (s *service) read(out io.Reader, found chan<- string) {
	address := regexp.MustCompile(`(http://\S+)/lab/`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			found <- m[1]
		}
	}
	close(found)
}

// started is what startService has begun, even when it failed.
var started *service

// stopService ends the program as Ctrl-C does, or kills it when that takes too long.
func stopService() {
	if started == nil {
		return
	}
	if p := started.program; p != nil && p.Process != nil {
		_ = p.Process.Signal(syscall.SIGINT)
		timer := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
		_ = p.Wait()
		timer.Stop()
	}
	_ = os.RemoveAll(started.dir)
}

// lines joins what a test lists.
func lines(all []string) string { return strings.Join(all, "\n") }
