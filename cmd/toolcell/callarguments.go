package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// maxArguments bounds the arguments of a call that are read from a file.
const maxArguments = 16 << 20

// howToGive says which forms there are.
const howToGive = `give a JSON object, such as '{"path": "/tmp"}', or path=/tmp, - for standard input, or @FILE`

// readCallArguments reads what follows the server and the tool: a JSON object, or names with
// values. Of these it makes an object of texts; typed is true then.
func readCallArguments(given []string, stdin io.Reader) (object json.RawMessage, typed bool, err error) {
	if len(given) == 0 {
		return json.RawMessage("{}"), false, nil
	}
	if first := given[0]; len(given) == 1 && !isNamed(first) {
		what, data := text.Printable(first, 200), []byte(first)
		file, isFile := strings.CutPrefix(first, "@")
		switch {
		case first == "-":
			what = "standard input"
			data, err = readAllOf(stdin)
		case isFile:
			what = file
			data, err = readArgumentsFile(file)
		}
		if err != nil {
			return nil, false, console.Invalidf("reading the arguments: %w", err)
		}
		object, err = objectOf(what, data)
		return object, false, err
	}
	texts := map[string]string{}
	for _, one := range given {
		if !isNamed(one) {
			return nil, false, console.Usagef("%q is no argument: %s", text.Printable(one, 200), howToGive)
		}
		name, value, _ := strings.Cut(one, "=")
		if _, twice := texts[name]; twice {
			return nil, false, console.Usagef("%q is given twice; a list is written as %[1]s='[1, 2]'", name)
		}
		texts[name] = value
	}
	object, err = json.Marshal(texts)
	return object, true, err
}

// isNamed reports whether an argument has the form NAME=VALUE.
func isNamed(given string) bool {
	name, _, found := strings.Cut(given, "=")
	return found && name != "" && !strings.ContainsAny(name, "{}[]\"' \t\n") && name[0] != '@'
}

func readArgumentsFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAllOf(f)
}

func readAllOf(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxArguments+1))
	if len(data) > maxArguments {
		err = fmt.Errorf("there are more than %s", text.Size(maxArguments))
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}

// objectOf returns data if it is a JSON object. What describes it in the error.
func objectOf(what string, data []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, &object); {
	case errors.As(err, &syntax) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")): // else it is meant as something else
		return nil, console.Invalidf("%s is not a JSON object: %w; %s", what, err, howToGive)
	case err != nil || object == nil:
		return nil, console.Invalidf("%s is not a JSON object; %s", what, howToGive)
	}
	return data, nil
}
