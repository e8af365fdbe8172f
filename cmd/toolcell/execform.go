package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// A formSchema is that of a form: a flat object (MCP specification, Elicitation).
type formSchema struct {
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required"`
}

// A formField is entered in one line.
type formField struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	OneOf       []formChoice    `json:"oneOf"`
	AnyOf       []formChoice    `json:"anyOf"` // of the items of an array
	Items       *formField      `json:"items"`
}

type formChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Bounds on a form, which comes from an untrusted server.
const (
	maxFields  = 50
	maxChoices = 100
	fieldWidth = 300 // columns of a title or a description
)

// askForm asks what a server wants to know, line by line.
func askForm(ctx context.Context, f *consent.Form, out io.Writer, read readLine) consent.Answer {
	var schema formSchema
	if f.URL == "" && (json.Unmarshal(f.Schema, &schema) != nil || len(schema.Properties) > maxFields) {
		fmt.Fprintln(out, "toolcell: this form cannot be shown in a terminal, so it is declined")
		return formAnswer("decline", nil)
	}
	question := "Answer it?"
	if f.URL != "" {
		fmt.Fprintf(out, "It wants you to open this address in a browser:\n  %s\n", console.Plain(f.URL))
		question = "Agree?"
	}
	for range maxTries {
		line, err := read(ctx, question+" [y/n/s: yes, no, stop asking]: ")
		if err != nil {
			fmt.Fprintln(out)
			return stopped()
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y":
			return fillIn(ctx, schema, out, read)
		case "n":
			return formAnswer("decline", nil)
		case "s":
			return formAnswer("cancel", nil)
		}
	}
	fmt.Fprintln(out)
	return formAnswer("cancel", nil)
}

func formAnswer(action string, content map[string]any) consent.Answer {
	return consent.Answer{Action: action, Content: content, By: terminalAnswer}
}

// stopped ends the run, as the end of the input and Ctrl-C do: a server could ask again.
func stopped() consent.Answer {
	return consent.Answer{Choice: consent.Stop, By: terminalAnswer}
}

// fillIn asks for the fields, the required ones first.
func fillIn(ctx context.Context, schema formSchema, out io.Writer, read readLine) consent.Answer {
	content := map[string]any{}
	order := func(name string) int { // the required ones come first, as the server lists them
		if i := slices.Index(schema.Required, name); i >= 0 {
			return i
		}
		return len(schema.Required)
	}
	for _, name := range slices.SortedFunc(maps.Keys(schema.Properties), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	}) {
		value, err := askField(ctx, name, schema.Properties[name], slices.Contains(schema.Required, name), out, read)
		if err != nil {
			fmt.Fprintln(out)
			if errors.Is(err, errTries) {
				return formAnswer("cancel", nil)
			}
			return stopped()
		}
		if value != nil {
			content[name] = value
		}
	}
	return formAnswer("accept", content)
}

// errTries means that no valid value was typed for a field.
var errTries = errors.New("no value was typed that fits")

// askField asks for one field. The value is nil if none is given.
func askField(ctx context.Context, name string, f formField, required bool, out io.Writer, read readLine) (any, error) {
	title := console.OneLine(cmp.Or(f.Title, name), fieldWidth)
	if f.Description != "" {
		fmt.Fprintf(out, "  %s\n", console.OneLine(f.Description, fieldWidth))
	}
	choices := f.choices()
	for i, c := range choices[:min(len(choices), maxChoices)] {
		fmt.Fprintf(out, "  %d  %s\n", i+1, console.OneLine(c.Title, fieldWidth))
	}
	mark := fmt.Sprintf("%s (%s): ", title, f.hint(required, len(choices)))
	for range maxTries {
		line, err := read(ctx, mark)
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		if line == "" && len(f.Default) > 0 {
			return f.Default, nil // not decoded, which would change large numbers
		}
		if line == "" && !required {
			return nil, nil
		}
		value, err := f.parse(line, choices)
		if err == nil {
			return value, nil
		}
		fmt.Fprintf(out, "  %v\n", err)
	}
	return nil, errTries
}

// choices returns the values that a field may have, nil if any.
func (f formField) choices() (all []formChoice) {
	values, titled := f.Enum, f.OneOf
	if f.Items != nil {
		values, titled = f.Items.Enum, f.Items.AnyOf
	}
	for _, v := range values {
		all = append(all, formChoice{v, v})
	}
	for _, c := range titled {
		all = append(all, formChoice{c.Const, cmp.Or(c.Title, c.Const)})
	}
	return all
}

// hint describes the values that may be typed.
func (f formField) hint(required bool, choices int) string {
	kind := map[string]string{"number": "a number", "integer": "a whole number", "boolean": "yes or no", "array": "numbers from the list, with commas between them"}[f.Type]
	switch {
	case kind != "":
	case choices > 0:
		kind = "a number from the list"
	default:
		kind = "text"
	}
	switch {
	case len(f.Default) > 0:
		return kind + "; Enter for " + console.OneLine(string(f.Default), fieldWidth)
	case !required:
		return kind + "; Enter to leave it out"
	}
	return kind
}

// parse reads a typed value. The server checks the rest of its schema.
func (f formField) parse(line string, choices []formChoice) (any, error) {
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(line, 10, 64)
		return n, notA("whole number", line, err)
	case "number":
		var n json.Number // which keeps the digits
		err := json.Unmarshal([]byte(line), &n)
		if err == nil && !strings.ContainsAny(line[:1], "-0123456789") { // null, or a number in quotes
			err = errors.ErrUnsupported
		}
		return n, notA("number", line, err)
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return true, nil
		case "n", "no", "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither yes nor no", line)
	case "array":
		values := []string{}
		for part := range strings.SplitSeq(line, ",") {
			value, err := choose(strings.TrimSpace(part), choices)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		return values, nil
	}
	if len(choices) > 0 {
		return choose(line, choices)
	}
	return line, nil
}

func notA(what, line string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is no %s", line, what)
}

// choose returns the choice of a number.
func choose(number string, choices []formChoice) (string, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > min(len(choices), maxChoices) {
		return "", fmt.Errorf("%q is no number from 1 to %d", number, min(len(choices), maxChoices))
	}
	return choices[n-1].Const, nil
}
