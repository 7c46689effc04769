package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// chat is a request for a completion.
type chat struct {
	// fields are all fields of the body, also such as the gateway does not know.
	fields map[string]json.RawMessage
	// prompt is the estimate of the prompt's tokens, answer the most tokens of the answer.
	prompt, answer int64
}

// maxChoices bounds n, and maxAnswer max_tokens.
const maxChoices, maxAnswer = 128, 1 << 20

// readChat reads a request and estimates its tokens. It sets max_tokens if the request has
// none, since only a bounded answer can be reserved.
func readChat(body io.Reader, bytesPerToken, maxTokens int64) (*chat, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var known struct {
		Messages            json.RawMessage `json:"messages"`
		Tools               json.RawMessage `json:"tools"`
		MaxTokens           *int64          `json:"max_tokens"`
		MaxCompletionTokens *int64          `json:"max_completion_tokens"`
		N                   *int64          `json:"n"`
		Stream              bool            `json:"stream"`
	}
	c := &chat{}
	if err := errors.Join(json.Unmarshal(b, &known), json.Unmarshal(b, &c.fields)); err != nil {
		return nil, err
	}
	choices := int64(1)
	if known.N != nil {
		choices = *known.N
	}
	switch {
	case known.MaxCompletionTokens != nil:
		maxTokens = *known.MaxCompletionTokens
	case known.MaxTokens != nil:
		maxTokens = *known.MaxTokens
	default:
		c.fields["max_tokens"] = json.RawMessage(fmt.Sprint(maxTokens))
	}
	switch {
	case known.Stream:
		return nil, errors.New("stream: this example reads the usage of whole answers only")
	case len(known.Messages) == 0:
		return nil, errors.New("messages: missing")
	case maxTokens < 1 || maxTokens > maxAnswer:
		return nil, fmt.Errorf("max_tokens: %d, at least 1 and at most %d", maxTokens, maxAnswer)
	case choices < 1 || choices > maxChoices:
		return nil, fmt.Errorf("n: %d, at least 1 and at most %d", choices, maxChoices)
	}
	c.prompt = (int64(len(known.Messages)+len(known.Tools)) + bytesPerToken - 1) / bytesPerToken
	c.answer = choices * maxTokens
	return c, nil
}

// usageOf reads the tokens used from an answer. It returns false if the answer does not tell
// them.
func usageOf(answer []byte) (int64, bool) {
	var a struct {
		Usage *struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(answer, &a) != nil || a.Usage == nil || a.Usage.Prompt < 0 || a.Usage.Completion < 0 {
		return 0, false
	}
	return a.Usage.Prompt + a.Usage.Completion, true
}
