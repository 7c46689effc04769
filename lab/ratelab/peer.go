package ratelab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/lab/peers"
)

// peer is a service of envoyproxy/ratelimit in each region, and redis in the first.
type peer struct {
	programs *proc.Programs
	cables   []*peers.Cable
	services []ratelimitv3.RateLimitServiceClient
	closes   []func() error
}

// startPeer starts redis and the services.
func startPeer(ctx context.Context, o *Options, dir string, quotas []Quota) (_ limiter, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	p := &peer{programs: proc.NewPrograms()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	redis, _, err := peers.Redis(ctx, p.programs, dir)
	if err != nil {
		return nil, err
	}
	config, err := rules(quotas)
	if err != nil {
		return nil, err
	}
	for i, region := range Regions {
		at := redis
		if i > 0 {
			cable, err := peers.NewCable(context.WithoutCancel(ctx), redis, o.RoundTrip/2)
			if err != nil {
				return nil, err
			}
			p.cables = append(p.cables, cable)
			at = cable.Addr()
		}
		home := filepath.Join(dir, "ratelimit-"+region)
		if err := os.Mkdir(home, 0o700); err != nil {
			return nil, err
		}
		addr, _, err := peers.Ratelimit{Bin: o.Ratelimit, Dir: home, Redis: at, Rules: config}.Start(ctx, p.programs, "ratelimit "+region)
		if err != nil {
			return nil, err
		}
		service, end, err := peers.Dial(addr)
		if err != nil {
			return nil, err
		}
		p.services, p.closes = append(p.services, service), append(p.closes, end)
		if err := peers.Answers(ctx, service, peers.Ask(domain, "before", "load")); err != nil {
			return nil, err
		}
	}
	return p, nil
}

const domain = "ratelab"

// rules is the configuration of the quotas.
func rules(quotas []Quota) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\ndescriptors:\n", domain)
	for i := range quotas {
		q := &quotas[i]
		unit := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour"}[q.Period]
		if unit == "" || q.Kind != "window" {
			return "", fmt.Errorf("%w: it knows no quota such as %v", ErrOptions, q)
		}
		fmt.Fprintf(&b, "  - key: quota\n    value: %s\n    rate_limit: {unit: %s, requests_per_unit: %d}\n", q.name(), unit, q.Limit)
	}
	return b.String(), nil
}

// ask implements limiter.
func (p *peer) ask(ctx context.Context, region int, q *Quota) (outcome, error) {
	tctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := p.services[region].ShouldRateLimit(tctx, peers.Ask(domain, "quota", q.name()))
	switch {
	case ctx.Err() != nil:
		return failed, context.Cause(ctx)
	case err != nil:
		return unsettled, nil // redis may have counted it
	case answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK:
		return granted, nil
	}
	return refused, nil
}

// check implements limiter.
func (p *peer) check(context.Context) error {
	for _, program := range p.programs.Processes() {
		if death := program.Death(); death != nil {
			return death
		}
	}
	return nil
}

// close implements limiter.
func (p *peer) close(ctx context.Context) error {
	var errs []error
	for _, end := range p.closes {
		errs = append(errs, end())
	}
	errs = append(errs, p.programs.Stop(ctx, grace))
	for _, c := range p.cables {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
