package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/judge"
	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/predict"
)

// predictOptions are the flags of predict.
type predictOptions struct {
	series    []string
	column    string
	split     float64
	horizons  []int
	models    []string
	quantile  float64
	last      int
	plot      string
	plotModel string
	plotBins  int
	json      bool
}

// predictCommand is `samya-lab predict`.
func (l *lab) predictCommand() *cobra.Command {
	var o predictOptions
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Judge forecasting models on series of demand",
		Long: `Shows every bin of a series to each model, in order, and compares what it had
forecast with what came. No forecast knows a later bin.

A series is a CSV file with a column t (or timestamp, or time), Unix seconds or
ISO 8601 in ascending order, and a column of demand. Times are snapped to a grid;
bins without a row are missing, not zero. A file named vmtable.csv is read as the
Azure public dataset publishes it. Either may be .gz.

  mae        mean absolute error of the epoch's net demand after the split, with
             its ratio to the random walk and to a constant
  stalls     share of epochs whose peak was above the high quantile, over all but
             the first fifth
  cost       newsvendor cost of holding that quantile: tokens too many, plus those
             missing times tau/(1-tau), in units of the mean peak; and the same of
             holding the net demand that is expected, as the paper does
  fit        seconds to see the whole series, fits included
  forecast   nanoseconds a bin, fits included`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return l.predict(&o) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.series, "series", nil, "files to judge on, separated by commas")
	f.StringVar(&o.column, "column", "count", "column of demand")
	f.Float64Var(&o.split, "split", .8, "share of the bins before the first that counts for the mean absolute error")
	f.IntSliceVar(&o.horizons, "horizon", []int{1, 12}, "lengths of the epoch in bins")
	f.StringSliceVar(&o.models, "models", []string{"all"}, "models: all, cheap (all but lstm), or names: "+strings.Join(predict.Names(), ", "))
	f.Float64Var(&o.quantile, "tau", .95, "quantile of the peak to hold")
	f.IntVar(&o.last, "last", 0, "judge on so many bins at the end alone; 0 for all")
	f.StringVar(&o.plot, "svg", "", "draw to this SVG file: the last series at the first horizon")
	f.StringVar(&o.plotModel, "plot-model", predict.Auto, "model of the picture")
	f.IntVar(&o.plotBins, "plot-bins", 576, "bins at the end that the picture shows")
	f.BoolVar(&o.json, "json", false, "print JSON, one line on stdout")
	return cmd
}

// check refuses options that no model can be judged by, and resolves the names of
// models.
func (o *predictOptions) check() error {
	switch {
	case len(o.series) == 0:
		return errors.New("--series: no file")
	case !(o.split > 0 && o.split < 1):
		return fmt.Errorf("--split is %v, must be above 0 and below 1", o.split)
	case len(o.horizons) == 0:
		return errors.New("--horizon: none")
	case o.last < 0 || o.plotBins < 1:
		return errors.New("--last must not be below zero, --plot-bins above")
	}
	var names []string
	for _, name := range o.models {
		switch name {
		case "all":
			names = append(names, predict.Names()...)
		case "cheap":
			names = append(names, slices.DeleteFunc(predict.Names(), func(n string) bool { return n == predict.LSTM })...)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	o.models = slices.Compact(names)
	for _, name := range append([]string{o.plotModel}, o.models...) {
		for _, h := range o.horizons {
			if h == 0 || o.quantile == 0 {
				return errors.New("--horizon and --tau must not be zero")
			}
			if _, err := predict.ByName(name, predict.Options{Horizon: h, Quantile: o.quantile}); err != nil {
				return err
			}
		}
	}
	return nil
}

// forecasts is the output of predict.
type forecasts struct {
	Split   float64        `json:"split"`
	Tau     float64        `json:"tau"`
	Results []judge.Result `json:"results"`
}

// predict judges the models on every series.
func (l *lab) predict(o *predictOptions) error {
	if err := o.check(); err != nil {
		return &usageError{err}
	}
	began := time.Now()
	told := forecasts{Split: o.split, Tau: o.quantile}
	var last *trace.Series
	for _, path := range o.series {
		s, err := trace.ReadFile(path, o.column)
		if err != nil {
			return fmt.Errorf("predict: %w", err)
		}
		if o.last > 0 && o.last < len(s.Bins) {
			s.Bins = s.Bins[len(s.Bins)-o.last:]
		}
		last = s
		for _, h := range o.horizons {
			results, err := judge.Compare(o.models, s.Bins, judge.Options{
				Split: o.split,
				Model: predict.Options{Horizon: h, Quantile: o.quantile, Day: s.Day()},
				Clock: func() float64 { return time.Since(began).Seconds() },
			})
			if err != nil {
				return fmt.Errorf("predict: %w", err)
			}
			for i := range results {
				results[i].Series = s.Name
			}
			told.Results = append(told.Results, results...)
			if !o.json {
				if err := tellForecasts(l.stdout, s, h, results); err != nil {
					return err
				}
			}
		}
	}
	if o.plot != "" {
		if err := o.draw(last); err != nil {
			return err
		}
	}
	if o.json {
		if err := json.NewEncoder(l.stdout).Encode(told); err != nil {
			return fmt.Errorf("print the results: %w", err)
		}
	}
	return nil
}

// tellForecasts prints the results for a series and a horizon.
func tellForecasts(w io.Writer, s *trace.Series, horizon int, results []judge.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(t, "%s: %d bins of %d s, %d missing, %s, epochs of %d\n", s.Name, len(s.Bins), s.Step, s.MissingBins(), season(s), horizon)
	_, _ = fmt.Fprintln(t, "model\tmae\t/walk\t/constant\tstalls %\tcost\tnet sum: stalls %\tcost\tfit s\tforecast ns\t")
	for _, r := range results {
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.3f\t%.3f\t%.1f\t%.2f\t%.1f\t%.2f\t%.2f\t%.0f\t\n", r.Model, r.MAE, r.RatioWalk, r.RatioConstant,
			100*r.StallRate, r.Cost, 100*r.PointStallRate, r.PointCost, r.FitSeconds, r.ForecastNS)
	}
	_, _ = fmt.Fprintln(t)
	if err := t.Flush(); err != nil { // Flush returns the errors of all writes before
		return fmt.Errorf("print the results: %w", err)
	}
	return nil
}

// season tells the season of a series, and the values beyond the limit: both
// silently decide how much a model can learn.
func season(s *trace.Series) string {
	told := fmt.Sprintf("a day of %d", s.Day())
	if s.Day() == 0 {
		told = "no season, as a day is no whole number of bins"
	}
	if s.Beyond > 0 {
		told += fmt.Sprintf(", %d beyond %d tokens", s.Beyond, uint64(predict.MaxTokens))
	}
	return told
}

// draw writes the picture.
func (o *predictOptions) draw(s *trace.Series) error {
	h := o.horizons[0]
	r, err := judge.Run(o.plotModel, s.Bins, judge.Options{
		Split: o.split, Keep: true, Model: predict.Options{Horizon: h, Quantile: o.quantile, Day: s.Day()},
	})
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	p := judge.Plot{
		Title: fmt.Sprintf("%s: %s, epochs of %d × %d s", s.Name, o.plotModel, h, s.Step),
		Step:  s.Step, First: len(s.Bins) - h - o.plotBins, Horizon: h, Bins: s.Bins, Forecasts: r.Forecasts,
	}
	return write(o.plot, p.Figure().WriteSVG)
}
