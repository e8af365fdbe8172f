package toml

// How a table came to be says what may still be added to it.
type made byte

const (
	implied  made = iota // by the header of a table in it: its own may follow
	byHeader             // keys under its header, and headers of tables in it
	dotted               // by a key such as a.b: other such keys
	inline               // nothing
)

type table struct {
	members map[string]any // also *table and *tables
	made    made
}

// tables are those of a list that is written with headers.
type tables struct{ all []*table }

func newTable(made made) *table { return &table{members: map[string]any{}, made: made} }

func (t *table) add(name string, made made) *table {
	next := newTable(made)
	t.members[name] = next
	return next
}

// close ends a table that is written inline, with those that its keys made.
func (t *table) close() {
	t.made = inline
	for _, v := range t.members {
		if in, ok := v.(*table); ok && in.made != inline {
			in.close()
		}
	}
}

// plain replaces tables by the types that callers know.
func (t *table) plain() map[string]any {
	for name, v := range t.members {
		t.members[name] = plain(v)
	}
	return t.members
}

func plain(v any) any {
	switch v := v.(type) {
	case *table:
		return v.plain()
	case *tables:
		list := make([]any, len(v.all))
		for i, t := range v.all {
			list[i] = t.plain()
		}
		return list
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}
