package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// auditRecord is a line of an audit log. A change has two lines: the first, without an
// outcome, is written before it begins, and the second before it is answered. A change
// refused to its caller has a single line, with the reason as the outcome.
type auditRecord struct {
	Time time.Time `json:"time"`
	// Number joins the lines of a change; each start of the process begins again at 1.
	Number uint64 `json:"number"`
	// principal is the caller. Via is the app manager, at a site that an app manager asked
	// for the caller.
	Caller string `json:"caller"`
	Via    string `json:"via,omitempty"`
	Role   string `json:"role,omitempty"`
	// Method is the change; Request is the whole request.
	Method    string          `json:"method"`
	Entity    string          `json:"entity,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
	// Address is the address of a refused caller.
	Address string `json:"address,omitempty"`
	// Outcome is OK, or the reason of the failure.
	Outcome string `json:"outcome,omitempty"`
}

// auditLog is a file of JSON lines that only grows at its end.
type auditLog struct {
	mu     sync.Mutex
	file   auditFile
	number uint64
	// broken is why no further line can be added.
	broken error
}

// auditFile is the part of a file that the log needs.
type auditFile interface {
	io.WriteCloser
	Sync() error
}

// openAudit opens a log, and makes it if it does not exist. A line cut off by a crash
// stays as it is, and the next line begins behind it.
func openAudit(path string) (*auditLog, error) {
	return openAuditWith(path, syncDir)
}

func openAuditWith(path string, syncDir func(string) error) (*auditLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	l := &auditLog{file: f}
	if err := l.begin(f, path, syncDir); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the audit log %s: %w", path, err), f.Close())
	}
	return l, nil
}

// begin checks that the log is a regular file, makes it durable, and ends a line that was
// cut off.
func (l *auditLog) begin(f *os.File, path string, syncDir func(string) error) error {
	// The file is durable only once its directory is on disk.
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if info.Size() == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	if _, err := f.WriteString("\n"); err != nil {
		return err
	}
	return f.Sync()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// add adds a line and returns once it is on disk. After an error no further line is
// added: a failed write or sync may have left anything in the file.
func (l *auditLog) add(r *auditRecord) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if r.Number == 0 {
		l.number++
		r.Number = l.number
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a line of the audit log: %w", err)
	}
	if _, err = l.file.Write(append(line, '\n')); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.broken = fmt.Errorf("writing the audit log: %w", err)
	}
	return l.broken
}

// close closes the log.
func (l *auditLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = errors.New("the audit log is closed")
	}
	return l.file.Close()
}
