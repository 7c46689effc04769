package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Outcome is what a driver told of a call: its result, or the member error.
type Outcome map[string]any

// Matches returns what is missing of want in got; empty: nothing. Objects may have more
// members than wanted. An object {"at_least": n}, {"at_most": n} or {"has": text} is a
// condition of a number or a text, and {"set": true} or false whether the member is there and
// is neither 0 nor empty. Unless want has a member error, got must have none.
func Matches(got Outcome, want map[string]any) string {
	if failed, ok := got["error"]; ok && want["error"] == nil {
		return fmt.Sprintf("the call failed: %v", failed)
	}
	return differs("", map[string]any(got), want)
}

func differs(at string, got, want any) string {
	w, ok := want.(map[string]any)
	if !ok {
		return unequal(at, got, want)
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if d, ok := condition(at, got, key, w[key]); ok {
			if d != "" {
				return d
			}
			continue
		}
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, and no object", at, got)
		}
		if d := differs(at+"."+key, g[key], w[key]); d != "" {
			return d
		}
	}
	return ""
}

// condition judges a condition; ok reports whether key is one.
func condition(at string, got any, key string, bound any) (problem string, ok bool) {
	number, isNumber := got.(float64)
	switch key {
	case "at_least":
		ok = isNumber && number >= bound.(float64)
	case "at_most":
		ok = isNumber && number <= bound.(float64)
	case "has":
		ok = strings.Contains(fmt.Sprint(got), bound.(string))
	case "set":
		ok = (got != nil && got != "" && got != 0.0 && got != false) == bound.(bool)
	default:
		return "", false
	}
	if ok {
		return "", true
	}
	return fmt.Sprintf("%s is %v, want %s %v", at, got, strings.ReplaceAll(key, "_", " "), bound), true
}

func unequal(at string, got, want any) string {
	list, ok := want.([]any)
	if !ok {
		if got != want {
			return fmt.Sprintf("%s is %v, want %v", at, got, want)
		}
		return ""
	}
	is, ok := got.([]any)
	if !ok || len(is) < len(list) {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	for i, w := range list {
		if d := differs(fmt.Sprintf("%s[%d]", at, i), is[i], w); d != "" {
			return d
		}
	}
	return ""
}

// fill returns v with "$" references in its strings replaced by values, which have the
// entity under "entity" and outcomes under their names.
func fill(v any, values map[string]any) (any, error) {
	switch v := v.(type) {
	case string:
		return fillText(v, values)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = fill(v[i], values); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			var err error
			if out[key], err = fill(member, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// fillText replaces a reference that is the whole text by its value, and "$entity" at the
// beginning of a text.
func fillText(s string, values map[string]any) (any, error) {
	entity, _ := values["entity"].(string)
	if rest, ok := strings.CutPrefix(s, "$entity"); ok {
		return entity + rest, nil
	}
	path, ok := strings.CutPrefix(s, "$")
	if !ok {
		return s, nil
	}
	var at any = values
	for key := range strings.SplitSeq(path, ".") {
		members, _ := at.(map[string]any)
		if outcome, ok := at.(Outcome); ok {
			members = outcome
		}
		next, ok := members[key]
		if !ok {
			return nil, fmt.Errorf("nothing is known of %s: no %q", s, key)
		}
		at = next
	}
	return at, nil
}
