package hints

import (
	"regexp"
	"sync"
)

// pattern compiles a regular expression when it is first needed: most runs need none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
