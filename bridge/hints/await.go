package hints

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

var (
	awaitOutside = text.Pattern(`^SyntaxError: '(?:await|async with|async for)' outside (?:async )?function \(.*, line (\d{1,7})\)`)
	plainDef     = text.Pattern(`^def[ \t]+(\w{1,100})[ \t]*\(`)
)

// awaitInFunction is for an await in a function that is not async.
func awaitInFunction(r Case) string {
	at := awaitOutside().FindStringSubmatch(r.Error)
	if at == nil {
		return ""
	}
	name := functionAround(r.Code, at[1])
	if name == "" {
		return "await works at the top level and in async functions only: write async def main() and await main()"
	}
	return fmt.Sprintf("await works at the top level and in async functions only: write async def %s(…) and await %[1]s(…)", name)
}

// functionAround returns the name of the function that a line is in, if it is one
// without async, or "".
func functionAround(code, number string) string {
	n, _ := strconv.Atoi(number) // seven digits
	lines := strings.Split(code, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	for outer := len(lines[n-1]); n > 0; n-- {
		line := lines[n-1]
		text := strings.TrimLeft(line, " \t")
		indent := len(line) - len(text)
		if text == "" || indent >= outer {
			continue
		}
		outer = indent
		if found := plainDef().FindStringSubmatch(text); found != nil {
			return found[1]
		}
		if strings.HasPrefix(text, "async def ") {
			return "" // it is in a lambda there
		}
	}
	return ""
}
