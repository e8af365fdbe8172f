package signature

import (
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/pyname"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// readParameters makes parameters of the properties of an input schema.
func readParameters(s *Signature, root *node) {
	r := &parameterReader{
		root: root, at: map[string]int{}, extra: map[bool]bool{}, left: maxCollected,
		types: typeBuilder{root: root, left: maxTypeNodes}, checks: newCheckBuilder(root),
	}
	needed := r.collect(root, 0)
	none := len(r.properties) == 0 && !r.extra[false]
	s.Extra = r.extra[true] || none && root.get("properties") == nil
	if c := r.checks.of(root); c != nil {
		s.others = c.others
	}
	s.lenient = s.Extra || none || r.unclear || len(r.properties) > maxParameters
	for _, name := range needed { // what is required need not be described
		r.add(name, nil)
	}
	taken := map[string]bool{}
	for _, p := range r.properties {
		taken[p.name] = true
	}
	isNeeded := make(map[string]bool, len(needed))
	for _, name := range needed {
		isNeeded[name] = true
	}
	for _, p := range r.properties[:min(len(r.properties), maxParameters)] {
		if len(p.name) <= maxParameterName {
			s.Parameters = append(s.Parameters, r.parameter(p, isNeeded[p.name], taken))
		} else {
			s.lenient = true
		}
	}
	slices.SortStableFunc(s.Parameters, func(a, b Parameter) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
}

// parameterReader collects the properties of an input schema and of the schemas that it
// is put together from.
type parameterReader struct {
	root       *node
	types      typeBuilder
	checks     *checkBuilder
	properties []property
	at         map[string]int
	extra      map[bool]bool // additionalProperties that allow, and that forbid
	unclear    bool          // some part could not be read
	left       int           // names it may still look at: parts may refer to each other, many times
}

type property struct {
	name   string
	schema *node   // nil if nothing describes it
	also   []*node // what other branches say of it
}

func (r *parameterReader) add(name string, schema *node) {
	if i, ok := r.at[name]; !ok {
		r.at[name] = len(r.properties)
		r.properties = append(r.properties, property{name: name, schema: schema})
	} else if p := &r.properties[i]; p.schema == nil {
		p.schema = schema
	} else if schema != nil {
		p.also = append(p.also, schema)
	}
}

// collect takes in the properties of a schema and returns those that every
// call needs.
func (r *parameterReader) collect(n *node, depth int) (needed []string) {
	n, _ = follow(r.root, n)
	properties := n.object("properties")
	if properties == nil {
		properties = &node{}
	}
	r.left -= 1 + len(properties.keys) + len(n.list("required"))
	if n == nil || n.kind != '{' || depth > maxTypeDepth || r.left < 0 {
		r.unclear = true
		return nil
	}
	for i, name := range properties.keys {
		r.add(name, properties.values[i])
	}
	for _, name := range n.list("required") {
		if name.kind == '"' && len(needed) < maxParameters {
			needed = append(needed, name.text)
		}
	}
	r.others(n)
	for _, m := range atMost(n.list("allOf"), maxSchemaBranch) {
		needed = append(needed, r.collect(m, depth+1)...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var every []string // what all the branches need
		for i, m := range atMost(n.list(key), maxSchemaBranch) {
			branch := r.collect(m, depth+1)
			if i == 0 {
				every = branch
				continue
			}
			also := make(map[string]bool, len(branch))
			for _, name := range branch {
				also[name] = true
			}
			every = slices.DeleteFunc(every, func(name string) bool { return !also[name] })
		}
		needed = append(needed, every...)
	}
	return needed
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
	for _, key := range []string{"if", "then", "else", "dependentSchemas", "dependencies"} {
		r.unclear = r.unclear || n.get(key) != nil
	}
}

func atMost(list []*node, n int) []*node { return list[:min(len(list), n)] }

// parameter makes a parameter of a property. taken has all names and aliases.
func (r *parameterReader) parameter(p property, needed bool, taken map[string]bool) Parameter {
	out := Parameter{Name: p.name, Required: needed, Annotation: annotate(r.types.typeOf(p.schema))}
	if !pyname.IsIdentifier(p.name) {
		out.Alias = parameterAlias(p.name, taken)
	}
	schema, _ := follow(r.root, p.schema)
	out.check = r.checks.either(append([]*node{p.schema}, p.also...))
	if schema == nil {
		return out
	}
	out.Description = text.Printable(schema.str("description"), maxParameterText)
	if p.schema != schema && p.schema.str("description") != "" {
		out.Description = text.Printable(p.schema.str("description"), maxParameterText)
	}
	out.comment = demands(schema)
	value := p.schema.get("default")
	if value == nil {
		value = schema.get("default")
	}
	if value != nil {
		out.Default = value.json(maxDefault)
		out.value = value.python(shownLiteral)
		// Schema generators list what has a default as required, though the
		// server fills it in itself.
		out.fill = needed && out.Default != nil
		out.Required = needed && !out.fill
	}
	return out
}

// parameterAlias is Alias, but the case stays as it is: it is the server's own
// name as far as Python allows.
func parameterAlias(name string, taken map[string]bool) string {
	return pyname.Unique(pyname.InItsCase(name), "arg", taken)
}
