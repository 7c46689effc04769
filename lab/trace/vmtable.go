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

// ReadVMTable reads vmtable.csv of the Azure public dataset as published, of 2017
// or 2019. The table has eleven columns without a header. The fourth and fifth are
// the times of creation and deletion in seconds, multiples of 300, in no order. The
// demand of a bin of 300 s is the VMs created minus the VMs deleted. VMs from
// before the table (created at 0) have no creation, and VMs still alive at the end
// (deleted at 2591700) have no deletion.
func ReadVMTable(r io.Reader) (*Series, error) {
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
	err := eachVM(r, func(created, deleted int64) {
		if created > 0 {
			count(created, 1)
		}
		if deleted < vmAlive {
			count(deleted, -1)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(net) == 0 {
		return nil, fmt.Errorf("%w: no VM was created or deleted", ErrFormat)
	}
	return &Series{Name: "vmtable", Step: vmStep, Bins: fromNet(net)}, nil
}

// ReadVMLeases reads the same table VM by VM, in the order of the table: each VM is
// a lease of a token. VMs from before the table are left out. VMs still alive at
// the end are held until then; a VM created later is held for no time.
func ReadVMLeases(r io.Reader) ([]Lease, error) {
	var leases []Lease
	err := eachVM(r, func(created, deleted int64) {
		if created > 0 {
			leases = append(leases, Lease{At: float64(created) / vmStep, Life: float64(max(0, deleted-created)) / vmStep})
		}
	})
	if err == nil && len(leases) == 0 {
		err = fmt.Errorf("%w: no VM was created", ErrFormat)
	}
	return leases, err
}

// eachVM reads the times of all VMs.
func eachVM(r io.Reader, vm func(created, deleted int64)) error {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = vmColumns
	rows.ReuseRecord = true
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("row: %w", err)
		}
		var at [2]int64
		for i, column := range [...]int{vmCreated, vmDeleted} {
			at[i], err = strconv.ParseInt(row[column], 10, 64)
			if err != nil || at[i] < 0 || at[i] > vmLast {
				line, _ := rows.FieldPos(column)
				return fmt.Errorf("%w: line %d: time %q is no number of seconds within a year", ErrFormat, line, row[column])
			}
		}
		vm(at[0], at[1])
	}
}
