package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// standIn stands for the endpoint of an LLM, to try the gateway and for tests. A token of a
// prompt is a word. Its answers have half of max_tokens, or the completion_tokens in the
// request's metadata; with "fail" in the metadata it fails.
type standIn struct{}

func (standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
		MaxTokens int64             `json:"max_tokens"`
		Metadata  map[string]string `json:"metadata"`
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&ask); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error": {"message": %q}}`, err.Error())
		return
	}
	if ask.Metadata["fail"] != "" {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, `{"error": {"message": "out of order"}}`)
		return
	}
	prompt := 0
	for _, m := range ask.Messages {
		prompt += len(strings.Fields(m.Content))
	}
	completion := (ask.MaxTokens + 1) / 2
	if n, err := strconv.ParseInt(ask.Metadata["completion_tokens"], 10, 64); err == nil {
		completion = min(n, ask.MaxTokens)
	}
	_, _ = fmt.Fprintf(w, `{"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "…"},`+
		` "finish_reason": "stop"}], "usage": {"prompt_tokens": %d, "completion_tokens": %d, "total_tokens": %d}}`+"\n",
		prompt, completion, int64(prompt)+completion)
}
