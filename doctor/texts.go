package doctor

import (
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"github.com/samya-db/samya/doctor/promql"
)

// inTexts are the functions that the texts of alerts use, as Prometheus has them.
var inTexts = template.FuncMap{
	"humanize":           func(v float64) string { return prefixed(v, 1000, "", "k", "M", "G", "T", "P", "E", "Z", "Y") },
	"humanize1024":       func(v float64) string { return prefixed(v, 1024, "", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi") },
	"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", v*100) },
	"humanizeDuration":   humanDuration,
}

// text reads the text of an alert.
func text(s string) (*template.Template, error) {
	return template.New("").Funcs(inTexts).Option("missingkey=zero").
		Parse("{{$labels := .Labels}}{{$value := .Value}}" + s)
}

// say fills in a text.
func say(t *template.Template, p promql.Point) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, struct {
		Labels map[string]string
		Value  float64
	}{p.Labels, p.Value}); err != nil {
		return "", fmt.Errorf("filling in the text of an alert: %w", err)
	}
	return b.String(), nil
}

// prefixed formats a number with four digits and a prefix.
func prefixed(v, base float64, prefixes ...string) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%.4g", v)
	}
	i := 0
	for math.Abs(v) >= base && i+1 < len(prefixes) {
		v /= base
		i++
	}
	if math.Abs(v) < 1 && base == 1000 {
		for _, small := range []string{"m", "u", "n", "p", "f", "a", "z", "y"} {
			if math.Abs(v) >= 1 {
				break
			}
			v *= 1000
			prefixes[0] = small
		}
	}
	return fmt.Sprintf("%.4g%s", v, prefixes[i])
}

// humanDuration formats seconds.
func humanDuration(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%.4g", v)
	}
	if v == 0 {
		return "0s"
	}
	if math.Abs(v) < 1 {
		return prefixed(v, 1000, "", "k") + "s"
	}
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	all := int64(v)
	s, m, h, d := all%60, all/60%60, all/3600%24, all/86400
	switch {
	case d != 0:
		return fmt.Sprintf("%s%dd %dh %dm %ds", sign, d, h, m, s)
	case h != 0:
		return fmt.Sprintf("%s%dh %dm %ds", sign, h, m, s)
	case m != 0:
		return fmt.Sprintf("%s%dm %ds", sign, m, s)
	}
	return fmt.Sprintf("%s%.4gs", sign, v)
}

// span formats how long was looked.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
