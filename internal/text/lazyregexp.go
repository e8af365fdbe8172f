package text

import (
	"regexp"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// Pattern returns a function that compiles a regular expression when it is first needed: most
// runs and commands need few of them. The expression is a constant.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(contain.Value("compiling a pattern", nil, func() *regexp.Regexp { return regexp.MustCompile(expr) }))
}
