package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/lab/spans"
)

// quietTrace is how long no span of a trace has come before the trace is shown.
const quietTrace = 2 * time.Second

// spansCommand is `samya-lab spans`.
func (l *lab) spansCommand() *cobra.Command {
	var addr string
	var countOnly bool
	cmd := &cobra.Command{
		Use:   "spans",
		Short: "Receive traces, and show each as a tree",
		Long: `Receives traces by the OpenTelemetry protocol over gRPC until it is interrupted, and
prints each as a tree once no span of it has come for 2s. It keeps 100,000 spans: it is
for a look, and for measurements, not a store of traces.`,
		Example: `  samya-lab spans --grpc 127.0.0.1:4317
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc samya demo`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := spans.Listen(cmd.Context(), addr, countOnly)
			if err != nil {
				return err
			}
			shown := make(map[string]bool)
			tick := time.NewTicker(quietTrace / 2)
			defer tick.Stop()
			var before []spans.Span
			for {
				select {
				case <-cmd.Context().Done():
					n, exports := r.Received()
					_, _ = fmt.Fprintf(l.stderr, "received %d spans in %d exports\n", n, exports) // progress may be lost
					return r.Close()
				case <-tick.C:
				}
				all := r.Spans()
				growing := make(map[string]bool)
				for _, s := range all[len(before):] {
					growing[s.Trace] = true
				}
				for _, trace := range spans.Traces(before) {
					if shown[trace] || growing[trace] {
						continue
					}
					shown[trace] = true
					for _, tree := range spans.Trees(all, trace) {
						_, _ = fmt.Fprintf(l.stdout, "%s\n%s\n", trace, tree) // nobody is left to be told
					}
				}
				before = all
			}
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "grpc", "127.0.0.1:4317", "address to serve gRPC on")
	f.BoolVar(&countOnly, "count-only", false, "count exports, decode none, and show nothing")
	return cmd
}
