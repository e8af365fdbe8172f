package commandline

import (
	"maps"
	"strings"
)

// An option is one of a program such as npx.
type option struct {
	as    string // what it is read as; "" is that it changes nothing here
	value bool   // it takes one
	why   string // it is not supported, and why
}

// options are those of one program, by their names with hyphens.
type options map[string]option

// add returns the options with others.
func (o options) add(others ...options) options {
	all := options{}
	for _, some := range append(others, o) {
		maps.Copy(all, some)
	}
	return all
}

// ignored returns options that change nothing here.
func ignored(value bool, names ...string) options {
	all := options{}
	for _, name := range names {
		all[name] = option{value: value}
	}
	return all
}

// refused returns options that are not supported.
func refused(why string, names ...string) options {
	all := options{}
	for _, name := range names {
		all[name] = option{why: why}
	}
	return all
}

// A reader reads the options of one program.
type reader struct {
	program string
	options options
	given   map[string][]string // values, by what an option is read as
	rest    []string
	ended   bool // by --
}

// read reads the options before the first argument that is none, or before --.
func (o options) read(program string, args []string) (*reader, error) {
	r := &reader{program: program, options: o, given: map[string][]string{}, rest: args}
	return r, r.readOptions()
}

// readOptions reads the options that the rest begins with.
func (r *reader) readOptions() error {
	for len(r.rest) > 0 && strings.HasPrefix(r.rest[0], "-") && r.rest[0] != "-" {
		word := r.rest[0]
		r.rest = r.rest[1:]
		if word == "--" {
			r.ended = true
			return nil
		}
		if err := r.readOption(word); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readOption(word string) error {
	name, value, has := strings.Cut(word, "=")
	if !strings.HasPrefix(word, "--") && len(word) > 2 && r.options[word[:2]].value { // -p3.12
		name, value, has = word[:2], strings.TrimPrefix(word[2:], "="), true
	}
	o, known := r.options[name]
	switch {
	case !known, o.why != "":
		return refusal{r.program, name, o.why}
	case !o.value && has && value != "true":
		return refusal{r.program, word, ""}
	case o.value && !has:
		if len(r.rest) == 0 {
			return refusal{r.program, name, "it has no value"}
		}
		value, r.rest = r.rest[0], r.rest[1:]
	}
	if o.as != "" {
		r.given[o.as] = append(r.given[o.as], value)
	}
	return nil
}

// last returns the value of an option, of several the last; "" is none.
func (r *reader) last(as string) string {
	if all := r.given[as]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}
