package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// api is the part of a description of an API, in OpenAPI 3.0, that the page shows.
type api struct {
	Info struct {
		Description string
	}
	Tags []struct {
		Name string
	}
	Paths      yaml.Node // in its order
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]response
		Schemas    map[string]schema
	}
}

type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          struct {
		Content map[string]media
	} `yaml:"requestBody"`
	Responses yaml.Node // in their order
}

type parameter struct {
	Ref               string `yaml:"$ref"`
	Name, In          string
	Required          bool
	Description       string
	Schema            schema
	Style, Deprecated any
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Content     map[string]media
}

type media struct {
	Schema schema
}

type schema struct {
	Ref                  string `yaml:"$ref"`
	Type, Format         string
	Description          string
	Enum                 []any
	Default              any
	Minimum, Maximum     any
	MinLength            any      `yaml:"minLength"`
	MaxLength            any      `yaml:"maxLength"`
	MinItems             any      `yaml:"minItems"`
	MaxItems             any      `yaml:"maxItems"`
	Required             []string `yaml:"required"`
	Items                *schema
	AnyOf                []schema  `yaml:"anyOf"`
	Properties           yaml.Node // in their order
	AdditionalProperties yaml.Node `yaml:"additionalProperties"`
}

// Reference is a page about an API, out of its description in OpenAPI.
func Reference(text string) (string, error) {
	var a api
	if err := yaml.Unmarshal([]byte(text), &a); err != nil {
		return "", fmt.Errorf("read the description: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# HTTP API reference\n\n%s\nMade of [the description in OpenAPI](%s/blob/main/%s), which each app manager\nserves at `/openapi.yaml`. [The API by examples](./api.md) begins with the most used requests.\n",
		a.Info.Description, repository, description)
	byTag := make(map[string]*strings.Builder)
	for i := 0; i+1 < len(a.Paths.Content); i += 2 {
		methods := a.Paths.Content[i+1]
		for j := 0; j+1 < len(methods.Content); j += 2 {
			var o operation
			if err := methods.Content[j+1].Decode(&o); err != nil {
				return "", fmt.Errorf("read %s: %w", a.Paths.Content[i].Value, err)
			}
			if len(o.Tags) == 0 {
				return "", fmt.Errorf("%s has no tag", a.Paths.Content[i].Value)
			}
			if byTag[o.Tags[0]] == nil {
				byTag[o.Tags[0]] = new(strings.Builder)
			}
			if err := a.operation(byTag[o.Tags[0]], strings.ToUpper(methods.Content[j].Value)+" "+a.Paths.Content[i].Value, o); err != nil {
				return "", err
			}
		}
	}
	for _, tag := range a.Tags {
		if byTag[tag.Name] != nil {
			fmt.Fprintf(&b, "\n## %s\n%s", strings.ToUpper(tag.Name[:1])+tag.Name[1:], byTag[tag.Name])
		}
	}
	b.WriteString("\n## Objects\n")
	for _, name := range slices.Sorted(maps.Keys(a.Components.Schemas)) {
		s := a.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", paragraph(s.Description))
		}
		if err := fields(&b, s); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// operation writes the section of an operation.
func (a *api) operation(b *strings.Builder, name string, o operation) error {
	fmt.Fprintf(b, "\n### `%s`\n\n%s.\n", name, strings.TrimSuffix(o.Summary, "."))
	if o.Description != "" {
		fmt.Fprintf(b, "\n%s\n", paragraph(o.Description))
	}
	if len(o.Parameters) > 0 {
		b.WriteString("\n| parameter | in | type | meaning |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			if p.Ref != "" {
				p = a.Components.Parameters[last(p.Ref)]
			}
			need := ""
			if p.Required && p.In != "path" {
				need = ", required"
			}
			fmt.Fprintf(b, "| `%s` | %s%s | %s | %s |\n", p.Name, p.In, need, typeOf(p.Schema), cell(p.Description+" "+bounds(p.Schema)))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
		fmt.Fprintf(b, "\nBody: %s, as `%s`.\n", typeOf(o.RequestBody.Content[kind].Schema), kind)
	}
	b.WriteString("\n| status | answer | body |\n|---|---|---|\n")
	var problems []string
	for i := 0; i+1 < len(o.Responses.Content); i += 2 {
		status := o.Responses.Content[i].Value
		var r response
		if err := o.Responses.Content[i+1].Decode(&r); err != nil {
			return fmt.Errorf("read %s of %s: %w", status, name, err)
		}
		if strings.HasPrefix(last(r.Ref), "Problem") {
			problems = append(problems, status)
			continue
		}
		if r.Ref != "" {
			r = a.Components.Responses[last(r.Ref)]
		}
		var bodies []string
		for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
			bodies = append(bodies, typeOf(r.Content[kind].Schema))
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", status, cell(r.Description), strings.Join(bodies, ", "))
	}
	if len(problems) > 0 {
		fmt.Fprintf(b, "| %s | what fails | [Problem](#problem) |\n", strings.Join(problems, ", "))
	}
	return nil
}

// fields writes the table of the fields of an object.
func fields(b *strings.Builder, s schema) error {
	if len(s.Properties.Content) == 0 {
		fmt.Fprintf(b, "%s. %s\n", typeOf(s), bounds(s))
		return nil
	}
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for i := 0; i+1 < len(s.Properties.Content); i += 2 {
		name := s.Properties.Content[i].Value
		var p schema
		if err := s.Properties.Content[i+1].Decode(&p); err != nil {
			return fmt.Errorf("read the field %s: %w", name, err)
		}
		need := ""
		if slices.Contains(s.Required, name) {
			need = " Required."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typeOf(p), cell(p.Description+need+" "+bounds(p)))
	}
	return nil
}

// typeOf tells a type, with links to objects.
func typeOf(s schema) string {
	switch {
	case s.Ref != "":
		return fmt.Sprintf("[%s](#%s)", last(s.Ref), strings.ToLower(last(s.Ref)))
	case s.Type == "array" && s.Items != nil:
		return "list of " + typeOf(*s.Items)
	case len(s.AnyOf) > 0:
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, typeOf(one))
		}
		return strings.Join(all, " or ")
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// bounds tells what values a type has.
func bounds(s schema) string {
	var all []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		all = append(all, "One of "+strings.Join(values, ", ")+".")
	}
	for _, r := range []struct {
		low, high any
		of        string
	}{{s.Minimum, s.Maximum, ""}, {s.MinLength, s.MaxLength, " characters"}, {s.MinItems, s.MaxItems, " items"}} {
		switch {
		case r.low != nil && r.high != nil:
			all = append(all, fmt.Sprintf("%v to %v%s.", r.low, r.high, r.of))
		case r.high != nil:
			all = append(all, fmt.Sprintf("At most %v%s.", r.high, r.of))
		case r.low != nil:
			all = append(all, fmt.Sprintf("At least %v%s.", r.low, r.of))
		}
	}
	if s.Default != nil {
		all = append(all, fmt.Sprintf("Default: `%v`.", s.Default))
	}
	return strings.Join(all, " ")
}

// last is the name that a reference ends with.
func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// paragraph is a text without the blanks around it.
func paragraph(text string) string { return strings.TrimSpace(text) }

// cell is a text as a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
