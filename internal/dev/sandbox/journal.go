package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// journalHeader is the first line of a state file, by which the sandbox knows its own.
const journalHeader = `{"sandbox_state":2}` + "\n"

// journal is the state file: a line for each change, appended before the change is answered. The system is not asked to
// write it to the disk (fsync): a killed sandbox loses nothing that it answered, a machine that loses its power may lose
// the last seconds.
type journal struct {
	file *os.File // nil: the state is not kept
	size int64
}

// openJournal reads the state file at path and opens it for more. No path, no file and an empty file all mean an empty
// state; a file that is not ours is an error, never overwritten. Only the owner may read it, for it holds the signing key.
func openJournal(path string) (*journal, *state, error) {
	j, st := &journal{}, newState()
	if path == "" {
		return j, st, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: SANDBOX_STATE: %w", err)
	}
	j.file = file
	if err := j.read(st); err != nil {
		return nil, nil, fmt.Errorf("sandbox: SANDBOX_STATE: %w", errors.Join(err, file.Close()))
	}
	return j, st, nil
}

// read brings every change into the state. What follows the last line end was cut short, so it was never answered, and goes.
func (j *journal) read(st *state) error {
	lines := bufio.NewReader(j.file)
	header, err := lines.ReadString('\n')
	if errors.Is(err, io.EOF) && header == "" {
		return j.write([]byte(journalHeader))
	}
	if header != journalHeader {
		return fmt.Errorf("%s is not a state file of this version of the sandbox; move it away to start anew",
			j.file.Name())
	}
	j.size = int64(len(header))
	for n := 2; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j.file.Truncate(j.size)
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: line %d: %w", j.file.Name(), n, err)
		}
		st.apply(e)
		j.size += int64(len(line))
	}
}

// add appends a change.
func (j *journal) add(e entry) error {
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return j.write(append(line, '\n'))
}

// write appends whole lines or nothing: half a line would make the lines after it unreadable.
func (j *journal) write(lines []byte) error {
	if _, err := j.file.WriteAt(lines, j.size); err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(lines))
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	return file.Close()
}
