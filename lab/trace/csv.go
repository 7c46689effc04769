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

// maxBins bounds the number of bins between the first and the last time of a file.
const maxBins = 4 << 20

// ErrFormat says that a file is malformed.
var ErrFormat = errors.New("not a series")

// ReadFile reads a series from a file: the VM table of the Azure public dataset if
// the name begins with vmtable, else CSV with a header (see ReadCSV). It
// decompresses a file with a name that ends in .gz.
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

// IsVMTable reports whether ReadFile takes a file for a VM table, by its name.
func IsVMTable(path string) bool { return strings.HasPrefix(filepath.Base(path), "vmtable") }

// ReadVMLeasesFile is ReadVMLeases for a file, decompressed as in ReadFile.
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

// ReadCSV reads a header, then rows of times and numbers. The column t (or
// timestamp, or time) holds the start of each bin in ascending order: Unix seconds,
// or ISO 8601 such as 2015-02-26T21:42:53Z, all of the same kind (see readTime).
// column is the demand of the bin. An optional column named peak is the highest
// running sum within the bin. Times are snapped to a grid of bins (see grid). Bins
// without a row are missing, and so is a number beyond predict.MaxTokens.
func ReadCSV(r io.Reader, column string) (*Series, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	header = slices.Clone(header)
	at, value, peak := timeColumn(header), slices.Index(header, column), slices.Index(header, "peak")
	if at < 0 || value < 0 {
		return nil, fmt.Errorf("%w: needs the columns t and %s, has %q", ErrFormat, column, header)
	}
	if peak == value {
		peak = -1
	}
	var times []int64
	var bins []predict.Bin
	var clock clock
	beyond := 0
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("row: %w", err)
		}
		line, _ := rows.FieldPos(0)
		t, err := clock.read(row[at])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
		bin, err := readBin(row, value, peak)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, line, err)
		}
		if max(math.Abs(bin.Net), math.Abs(bin.Peak)) > predict.MaxTokens {
			bin = predict.Missing
			beyond++
		}
		times, bins = append(times, t), append(bins, bin)
		if len(times) > maxBins {
			return nil, fmt.Errorf("%w: more than %d rows", ErrFormat, maxBins)
		}
	}
	s, err := grid(times, bins)
	if err != nil {
		return nil, err
	}
	s.Beyond = beyond
	return s, nil
}

// timeColumn returns the index of the column of times; -1 for none.
func timeColumn(header []string) int {
	for _, name := range [...]string{"t", "timestamp", "time"} {
		if at := slices.Index(header, name); at >= 0 {
			return at
		}
	}
	return -1
}

// readBin reads the demand of a row; peak is below zero for no such column.
func readBin(row []string, value, peak int) (predict.Bin, error) {
	if row[value] == "" {
		return predict.Missing, nil
	}
	net, err := strconv.ParseFloat(row[value], 64)
	if err != nil || math.IsInf(net, 0) {
		return predict.Bin{}, fmt.Errorf("demand is %q, no number", row[value])
	}
	bin := predict.Bin{Net: net, Peak: max(0, net)}
	if peak >= 0 {
		if bin.Peak, err = strconv.ParseFloat(row[peak], 64); err != nil || math.IsInf(bin.Peak, 0) {
			return predict.Bin{}, fmt.Errorf("peak is %q, no number", row[peak])
		}
	}
	return bin, nil
}

// WriteCSV writes a series for ReadCSV, with the columns t, net and peak. Missing
// bins have no row.
func WriteCSV(w io.Writer, s *Series) error {
	b := bufio.NewWriter(w)
	_, _ = b.WriteString("t,net,peak\n") // Flush returns the error
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
