package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"example.com/orders/internal/infra/config"
)

// Addresses are the URLs on which a process listens.
type Addresses struct {
	URL string `json:"url,omitempty"` // of the API
	Ops string `json:"ops"`
}

// Started signals the parent process that this process has started: it writes one line of JSON to the file descriptor
// that READY_FD names, and closes it. Without READY_FD it does nothing.
func Started(lookup config.Lookup, a Addresses) error {
	value, ok := lookup("READY_FD")
	if !ok {
		return nil
	}
	fd, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return errors.New("READY_FD must be the number of an open file descriptor")
	}
	file := os.NewFile(uintptr(fd), "READY_FD")
	if err := errors.Join(json.NewEncoder(file).Encode(a), file.Close()); err != nil {
		return fmt.Errorf("READY_FD: %w", err)
	}
	return nil
}
