package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"sync"
	"time"
)

// request is a line to a driver, and reply a line back.
type request struct {
	ID   int            `json:"id"`
	Op   string         `json:"op"`
	With map[string]any `json:"with"`
}

type reply struct {
	ID    int            `json:"id"`
	OK    map[string]any `json:"ok,omitempty"`
	Error map[string]any `json:"error,omitempty"`
}

// Driver is a driver program under way: lines of JSON in, lines of JSON out, in any order.
type Driver struct {
	// Name is the name of the client.
	Name string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	ended   chan struct{} // closed once nothing more comes
}

// StartDriver starts a driver program in a directory.
func StartDriver(name, dir string, argv []string, env ...string) (*Driver, error) {
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", name, err)
	}
	d := &Driver{Name: name, cmd: cmd, in: in, waiting: map[int]chan reply{}, ended: make(chan struct{})}
	go d.read(out)
	return d, nil
}

func (d *Driver) read(out io.Reader) {
	defer close(d.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "driver %s: %v in %q\n", d.Name, err, lines.Text())
			continue
		}
		d.mu.Lock()
		answered := d.waiting[r.ID]
		delete(d.waiting, r.ID)
		d.mu.Unlock()
		if answered != nil {
			answered <- r
		}
	}
}

// started is a call under way at a driver.
type started struct {
	d       *Driver
	id      int
	began   time.Time
	replied chan reply
}

// start begins a call.
func (d *Driver) start(op string, with map[string]any) (*started, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	c := &started{d: d, id: d.next, began: time.Now(), replied: make(chan reply, 1)}
	b, err := json.Marshal(request{c.id, op, with})
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", op, d.Name, err)
	}
	d.waiting[c.id] = c.replied
	if _, err := d.in.Write(append(b, '\n')); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", op, d.Name, err)
	}
	return c, nil
}

var (
	errDriverEnded = errors.New("the driver has ended")
	errNoReply     = errors.New("the driver does not answer")
)

// end waits for the outcome of a call. The member took_ms of the outcome is how long it took.
func (c *started) end(patience time.Duration) (Outcome, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-c.replied:
		out := Outcome{}
		if r.Error != nil {
			out["error"] = r.Error
		}
		maps.Copy(out, r.OK)
		out["took_ms"] = float64(time.Since(c.began).Milliseconds())
		return out, nil
	case <-c.d.ended:
		return nil, fmt.Errorf("%s: %w", c.d.Name, errDriverEnded)
	case <-timer.C:
		return nil, fmt.Errorf("%s: %w within %v", c.d.Name, errNoReply, patience)
	}
}

// Do makes a call to its end.
func (d *Driver) Do(op string, with map[string]any, patience time.Duration) (Outcome, error) {
	c, err := d.start(op, with)
	if err != nil {
		return nil, err
	}
	return c.end(patience)
}

// Stop ends the driver: it has no more input, and is killed if it does not end then.
func (d *Driver) Stop() error {
	_ = d.in.Close() // a driver that has ended has closed it
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
		if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("kill the driver %s: %w", d.Name, err)
		}
		<-d.ended
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("the driver %s ended: %w", d.Name, err)
	}
	return nil
}
