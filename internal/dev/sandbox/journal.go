package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// journalHeader is the first line of a state file, by which the sandbox knows its own.
const journalHeader = `{"sandbox_state":2}` + "\n"

// journal is the state file: a line for each change, appended before the change is answered. The system is not asked to
// write it to the disk (fsync): a killed sandbox loses nothing that it answered, a machine that loses its power may lose
// the last seconds. It is written anew, without what has been superseded, at each start.
type journal struct {
	file *os.File // nil: the state is not kept
	size int64
}

// openJournal reads the state file at path and opens it for more. No path and no file both mean an empty state; a file
// that is not ours is an error, never overwritten.
func openJournal(path string) (*journal, *state, error) {
	st := newState()
	if path == "" {
		return &journal{}, st, nil
	}
	file, err := os.Open(path)
	if err == nil {
		err = errors.Join(readJournal(file, st), file.Close())
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: SANDBOX_STATE: %w", err)
	}
	j, err := createJournal(path, st)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: SANDBOX_STATE: %w", err)
	}
	return j, st, nil
}

func readJournal(file *os.File, st *state) error {
	lines := bufio.NewReader(file)
	header, err := lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if header != journalHeader {
		return fmt.Errorf("%s is not a state file of this version of the sandbox; move it away to start anew", file.Name())
	}
	for n := 2; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what follows the last line end was cut short, so it was never answered
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: line %d: %w", file.Name(), n, err)
		}
		st.apply(e)
	}
}

// createJournal puts a file with the whole state in the place of the old one. A reader of the path, after a crash too,
// finds the old file or the new one. Only the owner may read it, for it holds the signing key.
func createJournal(path string, st *state) (*journal, error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // created with mode 0600
	if err != nil {
		return nil, err
	}
	j := &journal{file: file}
	var all bytes.Buffer
	all.WriteString(journalHeader)
	for _, e := range st.entries() {
		if err = encodeLine(&all, e); err != nil {
			break
		}
	}
	if err == nil {
		err = j.write(all.Bytes())
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return j, nil
}

// add appends a change.
func (j *journal) add(e entry) error {
	if j.file == nil {
		return nil
	}
	var line bytes.Buffer
	if err := encodeLine(&line, e); err != nil {
		return err
	}
	return j.write(line.Bytes())
}

func encodeLine(to *bytes.Buffer, e entry) error {
	if err := json.NewEncoder(to).Encode(e); err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return nil
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
