package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/kvlab"
)

// kvWorkload is the operations of a store's clients.
type kvWorkload struct {
	name     string
	preload  kvlab.Source
	clients  []kvlab.Source
	duration time.Duration
	files    []*kvlab.FileSource
}

const (
	// usualDuration is the duration of a workload without an end.
	usualDuration = 10 * time.Second
	// mostPrepared is the largest number of operations made before a run; a longer
	// workload makes each operation when a client asks for it.
	mostPrepared = 1 << 23
)

// sources opens the workload that the flags name.
func (o *kvOptions) sources() (*kvWorkload, error) {
	w := &kvWorkload{duration: o.duration}
	if o.workloadDir != "" {
		return w, o.fileSources(w)
	}
	made, err := o.load.make()
	if err != nil {
		return nil, &usageError{err}
	}
	w.name = "YCSB " + strings.ToUpper(o.load.workload)
	w.preload = kvlab.Writes(made.Names())
	if w.duration == 0 && o.operations == 0 {
		w.duration = usualDuration
	}
	for c := range o.load.clients {
		w.clients = append(w.clients, kvlab.Endless(made.Client(c)))
	}
	o.limit(w)
	if o.operations > 0 && o.operations <= mostPrepared {
		for i, s := range w.clients {
			if w.clients[i], err = kvlab.Drain(s); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// limit divides --operations among the clients.
func (o *kvOptions) limit(w *kvWorkload) {
	if o.operations == 0 {
		return
	}
	n := int64(len(w.clients))
	for c := range w.clients {
		w.clients[c] = kvlab.Limited(w.clients[c], (o.operations+n-1-int64(c))/n)
	}
}

// fileSources opens the files of a folder.
func (o *kvOptions) fileSources(w *kvWorkload) error {
	files, load, err := kvlab.Files(o.workloadDir)
	if err != nil {
		return fmt.Errorf("--workload-dir: %w", err)
	}
	w.name = o.workloadDir
	open := func(names ...string) kvlab.Source {
		s := kvlab.Open(names...)
		w.files = append(w.files, s)
		return s
	}
	if load != "" {
		w.preload = open(load)
	} else {
		w.preload = kvlab.Keys(open(files...))
	}
	for _, f := range files {
		w.clients = append(w.clients, open(f))
	}
	o.limit(w)
	return nil
}

// close closes the files, read to the end or not.
func (w *kvWorkload) close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
