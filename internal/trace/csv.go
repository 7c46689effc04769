package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/predict"
)

const (
	// maxBins bounds what a file may make of its first and last time.
	maxBins = 4 << 20
	// maxSeconds bounds times, so that differences do not overflow.
	maxSeconds = 1 << 40
)

// ErrFormat says that a file is not what it should be.
var ErrFormat = errors.New("not a series")

// ReadFile reads a series from a file: the VM table of the Azure public dataset
// if the name begins with vmtable, else CSV with a header (see ReadCSV). A name
// that ends in .gz is decompressed.
func ReadFile(path, column string) (*Series, error) {
	var s *Series
	err := readFile(path, func(r io.Reader, isVMTable bool) (err error) {
		if isVMTable {
			s, err = ReadVMTable(r)
		} else {
			s, err = ReadCSV(r, column)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
	return s, nil
}

// IsVMTable tells by a file's name whether ReadFile takes it for a VM table.
func IsVMTable(path string) bool { return strings.HasPrefix(filepath.Base(path), "vmtable") }

// ReadVMLeasesFile is ReadVMLeases of a file, decompressed as by ReadFile.
func ReadVMLeasesFile(path string) ([]Lease, error) {
	var leases []Lease
	err := readFile(path, func(r io.Reader, _ bool) (err error) {
		leases, err = ReadVMLeases(r)
		return err
	})
	return leases, err
}

// readFile opens a file, and decompresses it if its name ends in .gz.
func readFile(path string, read func(r io.Reader, isVMTable bool) error) error {
	f, err := os.Open(path) //nolint:gosec // whoever runs the program names the file
	if err != nil {
		return fmt.Errorf("read a series: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var r io.Reader = bufio.NewReaderSize(f, 1<<16)
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	if err := read(r, IsVMTable(path)); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// ReadCSV reads rows of a header, then times and numbers. The column t holds
// the start of each bin in Unix seconds, in ascending order; column is the
// demand of the bin; a column named peak, if there is one, the highest running
// sum within it. The length of a bin is the median distance of two rows. A row
// counts for the bin nearest to its time, two in one bin are added up, and bins
// without a row are missing.
func ReadCSV(r io.Reader, column string) (*Series, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	header = slices.Clone(header)
	at, value, peak := slices.Index(header, "t"), slices.Index(header, column), slices.Index(header, "peak")
	if at < 0 || value < 0 {
		return nil, fmt.Errorf("%w: needs the columns t and %s, has %q", ErrFormat, column, header)
	}
	var times []int64
	var bins []predict.Bin
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("row: %w", err)
		}
		line, _ := rows.FieldPos(0)
		t, err := strconv.ParseInt(row[at], 10, 64)
		if err != nil || t > maxSeconds || t < -maxSeconds || len(times) > 0 && t < times[len(times)-1] {
			return nil, fmt.Errorf("%w: line %d: time %q is no number or not in order", ErrFormat, line, row[at])
		}
		bin := predict.Missing
		if row[value] != "" {
			if bin.Net, err = strconv.ParseFloat(row[value], 64); err != nil || math.IsInf(bin.Net, 0) {
				return nil, fmt.Errorf("%w: line %d: %s is %q, no number", ErrFormat, line, column, row[value])
			}
			bin.Peak = max(0, bin.Net)
			if peak >= 0 && peak != value {
				if bin.Peak, err = strconv.ParseFloat(row[peak], 64); err != nil || math.IsInf(bin.Peak, 0) {
					return nil, fmt.Errorf("%w: line %d: peak is %q, no number", ErrFormat, line, row[peak])
				}
			}
		}
		times, bins = append(times, t), append(bins, bin)
		if len(times) > maxBins {
			return nil, fmt.Errorf("%w: more than %d rows", ErrFormat, maxBins)
		}
	}
	return grid(times, bins)
}

// grid puts rows into bins of equal length.
func grid(times []int64, rows []predict.Bin) (*Series, error) {
	if len(times) < 2 {
		return nil, fmt.Errorf("%w: %d rows, needs two", ErrFormat, len(times))
	}
	steps := make([]int64, len(times)-1)
	for i := range steps {
		steps[i] = times[i+1] - times[i]
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	if step <= 0 {
		return nil, fmt.Errorf("%w: most rows have one time", ErrFormat)
	}
	start := times[0]
	count := (times[len(times)-1]-start+step/2)/step + 1
	if count > maxBins {
		return nil, fmt.Errorf("%w: %d bins of %d s, at most %d", ErrFormat, count, step, maxBins)
	}
	s := &Series{Start: start, Step: step, Bins: slices.Repeat([]predict.Bin{predict.Missing}, int(count))}
	for i, t := range times {
		b := &s.Bins[(t-start+step/2)/step]
		switch {
		case math.IsNaN(rows[i].Net):
		case math.IsNaN(b.Net):
			*b = rows[i]
		default:
			*b = predict.Bin{Net: b.Net + rows[i].Net, Peak: max(b.Peak, b.Net+rows[i].Peak)}
		}
	}
	return s, nil
}

// WriteCSV writes a series so that ReadCSV reads it again, with the columns t,
// net and peak; missing bins have no row.
func WriteCSV(w io.Writer, s *Series) error {
	b := bufio.NewWriter(w)
	_, _ = b.WriteString("t,net,peak\n") // Flush reports what went wrong
	for i, bin := range s.Bins {
		if math.IsNaN(bin.Net) {
			continue
		}
		row := strconv.AppendInt(nil, s.Start+int64(i)*s.Step, 10)
		row = strconv.AppendFloat(append(row, ','), bin.Net, 'g', -1, 64)
		row = strconv.AppendFloat(append(row, ','), bin.Peak, 'g', -1, 64)
		_, _ = b.Write(append(row, '\n'))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write a series: %w", err)
	}
	return nil
}
