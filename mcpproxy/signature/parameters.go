package signature

import (
	"cmp"
	"slices"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/text"
)

// readParameters makes parameters of the properties of an input schema.
func readParameters(s *Signature, root *node) {
	r := &parameterReader{
		at: map[string]int{}, extra: map[bool]bool{}, left: maxCollected,
		types: typeBuilder{left: maxTypeNodes}, old: isOld(root),
	}
	all := r.collect(root, 0, false)
	none := len(r.properties) == 0 && !r.extra[false]
	s.Extra = r.extra[true] || none && root.get("properties") == nil
	s.old, s.others = r.old, root.schema().others()
	s.lenient = s.Extra || none || r.unclear || len(r.properties) > maxParameters
	isNeeded := make(map[string]bool, len(all.needed))
	for _, name := range all.needed { // what is required need not be described
		r.add(name, nil, false)
		isNeeded[name] = true
	}
	taken := map[string]bool{}
	for _, p := range r.properties {
		taken[p.name] = true
	}
	var optional []Parameter
	for i, p := range r.properties {
		var schema *node
		if checks := all.checks[p.name]; len(checks) > 0 {
			schema = combined("allOf", checks)
		}
		if i < maxParameters && len(p.name) <= maxParameterName {
			out := r.parameter(p, isNeeded[p.name], taken)
			if out.schema = schema; out.Required {
				s.Parameters = append(s.Parameters, out)
			} else {
				optional = append(optional, out)
			}
			continue
		}
		if s.known == nil {
			s.known = map[string]*node{}
		}
		s.lenient, s.known[p.name] = true, schema
	}
	s.Parameters = append(s.Parameters, optional...)
}

// parameterReader collects the properties of an input schema and of the schemas that it
// is put together from.
type parameterReader struct {
	types      typeBuilder
	old        bool // as in Signature
	properties []property
	at         map[string]int
	extra      map[bool]bool // additionalProperties that allow, and that forbid
	unclear    bool          // some part could not be read
	left       int           // names it may still look at: parts may refer to each other, many times
}

type property struct {
	name   string
	schema *node // nil if nothing describes it
	branch bool  // it is there only in some of several forms of the arguments
}

func (r *parameterReader) add(name string, schema *node, branch bool) {
	if _, ok := r.at[name]; !ok {
		r.at[name] = len(r.properties)
		r.properties = append(r.properties, property{name, schema, branch})
	}
}

// A part is what a schema demands of all calls.
type part struct {
	needed []string           // every call has these
	checks map[string][]*node // a value has to pass all
}

// add adds what another schema says that holds too.
func (p *part) add(also part) {
	p.needed = append(p.needed, also.needed...)
	for name, checks := range also.checks {
		if len(p.checks[name]) < maxTogether {
			p.checks[name] = append(p.checks[name], checks...)
		}
	}
}

// collect takes in the properties of a schema and returns what it says of every call. A
// branch is one of several forms. What cannot be understood says nothing.
func (r *parameterReader) collect(n *node, depth int, branch bool) part {
	out := part{checks: map[string][]*node{}}
	if n.get("$ref") != nil && (n.get("properties") != nil || n.get("required") != nil || n.get("allOf") != nil || n.get("anyOf") != nil || n.get("oneOf") != nil) {
		r.unclear = true // whether what stands beside a reference counts depends on the draft
	}
	n = n.schema()
	r.left -= 1 + len(n.list("required"))
	if n == nil || depth > maxTypeDepth || r.left < 0 {
		r.unclear = true
		return out
	}
	for name, schema := range n.object("properties").members {
		r.left--
		r.add(name, schema, branch)
		if schema.schema() != nil {
			out.checks[name] = append(out.checks[name], schema)
		}
	}
	for _, name := range n.list("required") {
		if name.kind == '"' && len(out.needed) < maxParameters {
			out.needed = append(out.needed, name.text)
		}
	}
	r.others(n)
	for _, m := range r.atMost(n.list("allOf")) {
		out.add(r.collect(m, depth+1, branch))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		out.add(r.oneOf(n.list(key), depth+1))
	}
	return out
}

// oneOf returns what all of several forms say: what only some have is for the server.
func (r *parameterReader) oneOf(branches []*node, depth int) part {
	out := part{checks: map[string][]*node{}}
	var parts []part
	for _, m := range r.atMost(branches) {
		parts = append(parts, r.collect(m, depth, true))
	}
	if len(parts) == 0 || len(parts) < len(branches) {
		return out
	}
	needs := map[string]int{}
	for _, p := range parts {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(p.needed))) {
			needs[name]++
		}
	}
	for _, name := range parts[0].needed {
		if needs[name] == len(parts) {
			out.needed = append(out.needed, name)
		}
	}
	for name := range parts[0].checks {
		var either []*node
		for _, p := range parts {
			if len(p.checks[name]) > 0 {
				either = append(either, combined("allOf", p.checks[name]))
			}
		}
		if len(either) == len(parts) {
			out.checks[name] = []*node{combined("anyOf", either)}
		}
	}
	return out
}

// others notes what a schema says of arguments that it does not list.
func (r *parameterReader) others(n *node) {
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		if more := n.get(key); more != nil {
			r.extra[more.kind == 't' || more.kind == '{'] = true
		}
	}
	if p := n.object("patternProperties"); p != nil && len(p.keys) > 0 {
		r.extra[true] = true
	}
	for _, key := range []string{
		"if", "then", "else", "dependentSchemas", "dependencies", "extends", "$dynamicRef", "$recursiveRef",
	} {
		r.unclear = r.unclear || n.get(key) != nil
	}
}

// atMost bounds a list of schemas.
func (r *parameterReader) atMost(list []*node) []*node {
	if len(list) > maxSchemaBranch {
		r.unclear = true
		return list[:maxSchemaBranch]
	}
	return list
}

// parameter makes a parameter of a property. taken has all names and aliases.
func (r *parameterReader) parameter(p property, needed bool, taken map[string]bool) Parameter {
	out := Parameter{Name: p.name, Required: needed, Annotation: annotate(r.types.typeOf(p.schema))}
	if !pyname.IsIdentifier(p.name) {
		out.Alias = pyname.Unique(pyname.InItsCase(p.name), "arg", taken) // in the case of the server's name
	}
	schema, _ := follow(p.schema) // nil if it leads nowhere
	out.Description = text.Printable(cmp.Or(p.schema.str("description"), schema.str("description")), maxParameterText)
	out.comment = demands(schema)
	if value := cmp.Or(p.schema.get("default"), schema.get("default")); value != nil {
		out.Default = value.json(maxDefault)
		out.value = value.python(shownLiteral)
		// Schema generators list what has a default as required, though the
		// server fills it in itself.
		out.Required = needed && out.Default == nil
		v := valueChecker{old: r.old, left: maxCheckWork}
		out.fill = needed && out.Default != nil && !p.branch && v.mismatch(p.schema, out.Default, 0) == nil
	}
	return out
}
