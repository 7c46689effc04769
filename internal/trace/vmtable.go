package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	vmColumns = 11
	vmCreated = 3
	vmDeleted = 4
	vmStep    = 300
	// vmAlive is the deletion time of VMs that outlive the table.
	vmAlive = 2591700
	// vmLast bounds times: a year.
	vmLast = 366 * secondsPerDay
)

// ReadVMTable reads vmtable.csv of the Azure public dataset as it is published,
// of 2017 or 2019: eleven columns without a header, the fourth and fifth the
// times of creation and deletion in seconds, multiples of 300, in no order. The
// demand of a bin of 300 s is the VMs created in it less those deleted. VMs that
// were there before (created at 0) were not created, and those still there at
// the end (deleted at 2591700) not deleted: neither is an event.
func ReadVMTable(r io.Reader) (*Series, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = vmColumns
	rows.ReuseRecord = true
	var net []float64
	count := func(seconds int64, vms float64) {
		for bin := int(seconds / vmStep); ; {
			if bin < len(net) {
				net[bin] += vms
				return
			}
			net = append(net, 0)
		}
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("row: %w", err)
		}
		var at [2]int64
		for i, column := range [...]int{vmCreated, vmDeleted} {
			at[i], err = strconv.ParseInt(row[column], 10, 64)
			if err != nil || at[i] < 0 || at[i] > vmLast {
				line, _ := rows.FieldPos(column)
				return nil, fmt.Errorf("%w: line %d: time %q is no number of seconds within a year", ErrFormat, line, row[column])
			}
		}
		if created := at[0]; created > 0 {
			count(created, 1)
		}
		if deleted := at[1]; deleted < vmAlive {
			count(deleted, -1)
		}
	}
	if len(net) == 0 {
		return nil, fmt.Errorf("%w: no VM was created or deleted", ErrFormat)
	}
	return &Series{Name: "vmtable", Step: vmStep, Bins: fromNet(net)}, nil
}
