package e2e

import (
	"regexp"
	"strconv"
	"testing"
)

// TestPackagesPrepareLittle: what a package makes before main is paid for by each command and by
// each sandbox that starts cold, in which toolcell is pid 1. Memory is what can be counted; a regular
// expression takes 3 to 100 kB, and text.Pattern puts it off.
func TestPackagesPrepareLittle(t *testing.T) {
	t.Parallel()
	const most = 40_000
	_, errs, code := firstHost(t).run(t, env{"GODEBUG": "inittrace=1"}, "version")
	found := regexp.MustCompile(`init (\S+) @.*, (\d+) bytes`).FindAllStringSubmatch(errs, -1)
	if code != exitOK || len(found) < 10 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	for _, of := range found {
		if n, _ := strconv.Atoi(of[2]); n > most && regexp.MustCompile(`^(main|github\.com/toolcell/.*)$`).MatchString(of[1]) {
			t.Errorf("%s takes %d bytes before main", of[1], n)
		}
	}
}
