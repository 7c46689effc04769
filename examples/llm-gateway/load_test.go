package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// call is a request of the load.
type call struct {
	region             int
	team               string
	prompt, completion int64
}

// every thins the trace: a call stands for so many requests.
const every = 24

// traceFile has the requests and tokens of an LLM service, in bins of 10 s.
const traceFile = "../../../shared/data/azure_llm_conv_10s.csv"

// trace reads the load: the calls of each bin in turn, without pauses. Most come from a
// region that changes every 30 bins, and the teams take turns.
func trace(t *testing.T, teams ...string) (all []call) {
	t.Helper()
	for bin, b := range bins(t) {
		hot := bin / 30 % len(regions)
		for range (b[0] + every - 1) / every {
			n := len(all)
			at := hot
			if n%5 >= 3 {
				at = n % len(regions)
			}
			all = append(all, call{at, teams[n%len(teams)], max(1, b[1]/b[0]), max(1, b[2]/b[0])})
		}
	}
	return all
}

// bins are the requests, and the tokens of prompts and of answers, by bin. Without the file
// they are drawn: a wave with bursts.
func bins(t *testing.T) (all [][3]int64) {
	t.Helper()
	f, err := os.Open(traceFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Logf("%s is missing: a wave in its place", traceFile)
		for i := range 350 {
			n := int64(50 + 30*math.Sin(float64(i)/20) + 20*float64(i%7/6))
			all = append(all, [3]int64{n, n * int64(900+i%5*150), n * int64(180+i%3*40)})
		}
		return all
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var b [3]int64
		for i := range b {
			if b[i], err = strconv.ParseInt(row[i+1], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if b[0] > 0 {
			all = append(all, b)
		}
	}
	return all
}

// answer is an answer to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes a call at a gateway.
func send(ctx context.Context, url string, c call, fields string) (*answer, error) {
	// A token of the stand-in is a word.
	body := fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": %q}]%s}`, strings.Repeat("w ", int(c.prompt)), fields)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Team", c.team)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return &answer{resp.StatusCode, resp.Header, b.Bytes()}, err
}

// play makes all calls, in each region by some callers, and hands each answer to check.
func play(t *testing.T, all []call, gateways []string, check func(call, *answer)) {
	t.Helper()
	const callers = 4
	queues := make([]chan call, len(regions))
	var working sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan call, callers)
		for range callers {
			working.Go(func() {
				for c := range queues[i] {
					a, err := send(t.Context(), gateways[i], c, fmt.Sprintf(`, "max_tokens": %d, "metadata": {"completion_tokens": "%d"}`, 2*c.completion, c.completion))
					if err != nil {
						t.Error(err)
						continue
					}
					check(c, a)
				}
			})
		}
	}
	for _, c := range all {
		queues[c.region] <- c
	}
	for _, q := range queues {
		close(q)
	}
	working.Wait()
}

// noonZone is a time zone in which it is about noon: the day does not end during a test.
func noonZone() string {
	hours := 12 - time.Now().UTC().Hour()
	return fmt.Sprintf("Etc/GMT%+d", -hours)
}
