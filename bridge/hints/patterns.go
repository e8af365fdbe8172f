package hints

import (
	"regexp"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// pattern compiles a regular expression when it is first needed: most runs need none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(contain.Value("compiling a pattern", nil, func() *regexp.Regexp { return regexp.MustCompile(expr) }))
}
