package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/appmgr"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/site"
)

// rateLimitFlags are the flags of the rate limit service.
func rateLimitFlags(cmd *cobra.Command, s *ratelimit.Settings) {
	f := cmd.Flags()
	f.StringVar(&s.Dir, "ratelimit-config", "", "directory, or a file, with rate limits as envoyproxy/ratelimit has them; serves Envoy's rate limit service; looked at every 2s")
	f.StringVar(&s.Headers, "ratelimit-headers", "none", "header fields that Envoy adds to its answers: none, ratelimit (RateLimit and RateLimit-Policy), x-ratelimit (X-RateLimit-Limit and two more) or envoyproxy (RateLimit-Limit and two more)")
	f.BoolVar(&s.Shadow, "ratelimit-shadow", false, "let every request pass, and count as ever")
	f.BoolVar(&s.Drain, "ratelimit-drain", false, "have a refused request of several hits use up what is left of the limits that it exceeds")
	f.StringVar(&s.Kind, "ratelimit-kind", "window", "how tokens come back that are made for rules: window, all at the end of a period, or bucket, evenly, but for months and years")
	f.DurationVar(&s.Wait, "ratelimit-wait", ratelimit.DefaultWait, "how long a decision may wait for tokens of other sites, within the time of its caller; at most 10s")
	f.IntVar(&s.MaxEntities, "ratelimit-entities", ratelimit.DefaultEntities, "how many entities the process may create for rate limits until it is started again")
	f.DurationVar(&s.QuotaTTL, "ratelimit-quota-ttl", ratelimit.DefaultQuotaTTL, "how long a proxy may go by an assignment of the rate limit quota service")
	f.IntVar(&s.QuotaBuckets, "ratelimit-quota-buckets", ratelimit.DefaultBuckets, "how many buckets of the rate limit quota service proxies may report")
	must(cmd.RegisterFlagCompletionFunc("ratelimit-kind", cobra.FixedCompletions(ratelimit.Kinds(), cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("ratelimit-headers", cobra.FixedCompletions(ratelimit.HeaderStyles(), cobra.ShellCompDirectiveNoFileComp)))
}

// siteLimits are the settings of the rate limit service at a site.
type siteLimits struct{ ratelimit.Settings }

// front returns what makes the rate limit service of a site; nil without rules. Its error
// names each fault of the settings and the rules.
func (l *siteLimits) front(s *served) (func(*site.Inside) (site.Front, error), error) {
	if err := l.Validate(); err != nil {
		return nil, &usageError{err}
	}
	if l.Dir == "" {
		return nil, nil //nolint:nilnil // a site has no front
	}
	if _, err := ratelimit.ReadRules(l.Dir); err != nil {
		return nil, &usageError{fmt.Errorf("ratelimit-config: %w", err)}
	}
	return func(inside *site.Inside) (site.Front, error) {
		return appmgr.NewInside(appmgr.Config{Config: s.Config, RateLimits: l.Settings, MaxConcurrent: s.security.inFlight, Registry: inside.Registry()}, inside)
	}, nil
}

// ratelimitCommand is `samya ratelimit`.
func (p *program) ratelimitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ratelimit",
		Short: "Check files of rate limits for Envoy",
		Long: `Files of rate limits are those of envoyproxy/ratelimit. A site or an app manager
that is started with --ratelimit-config serves them to Envoy (docs/envoy.md).`,
		Args: exactly(),
	}
	cmd.AddCommand(p.ratelimitCheck())
	return cmd
}

// ratelimitCheck is `samya ratelimit check`.
func (p *program) ratelimitCheck() *cobra.Command {
	var domain string
	var descriptors []string
	cmd := &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "Check rate limits, and tell which limit a descriptor has",
		Long: `Reads a file, or all files *.yaml and *.yml of a directory, as a site or an app manager
does. Each fault is told with its file, line and field. With --descriptor it tells
the limit of each descriptor, and the entity that counts.`,
		Example: "  samya ratelimit check limits/\n" +
			"  samya ratelimit check limits/ --domain edge --descriptor remote_address=50.0.0.5",
		Args: exactly("FILE|DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := ratelimit.ReadRules(args[0])
			if err != nil {
				return &usageError{err}
			}
			if len(descriptors) == 0 {
				_, err := fmt.Fprintf(p.stdout, "%s: ok: %d descriptors in the domains %s\n", args[0], config.Len(), strings.Join(config.Domains(), ", "))
				return err
			}
			if domain == "" {
				all := config.Domains()
				if len(all) != 1 {
					return &usageError{fmt.Errorf("domain: missing, must be one of %s", strings.Join(all, ", "))}
				}
				domain = all[0]
			}
			return tellRules(p.stdout, config, domain, descriptors)
		},
	}
	f := cmd.Flags()
	f.StringVar(&domain, "domain", "", "the domain of the descriptors; needed where there are several")
	f.StringArrayVar(&descriptors, "descriptor", nil, "a descriptor of a request, such as user=alice,path=/a; several are those of a single request")
	return cmd
}

// tellRules prints the rules of a request.
func tellRules(w io.Writer, config *rules.Config, domain string, texts []string) error {
	all := make([]rules.Descriptor, len(texts))
	for i, text := range texts {
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			if key == "" {
				return &usageError{fmt.Errorf("descriptor: %q has an entry without a key", text)}
			}
			all[i].Entries = append(all[i].Entries, rules.Entry{Key: key, Value: value})
		}
	}
	var errs []error
	for i, m := range config.Match(domain, all...) {
		_, err := fmt.Fprintf(w, "%s: %s\n", texts[i], ruleText(m))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ruleText tells a rule.
func ruleText(m *rules.Match) string {
	switch {
	case m == nil:
		return "no limit"
	case m.Unlimited:
		return "unlimited"
	}
	text := fmt.Sprintf("%d a %s, counted by %s", m.Limit, m.Unit, m.Entity)
	if m.Shadow {
		text += ", in shadow mode"
	}
	if m.Quota {
		text += ", in quota mode"
	}
	if len(m.Replaces) > 0 {
		text += ", replaces " + strings.Join(m.Replaces, ", ")
	}
	return text
}
