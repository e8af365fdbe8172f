package login

import (
	"net/http"
	"strings"
	"testing"
)

// TestChallengesLeadToTheMetadata: to the first address in them that is one.
func TestChallengesLeadToTheMetadata(t *testing.T) {
	const first, second = "https://a.example/first", "https://a.example/second"
	longest := first + strings.Repeat("x", maxMetadata-len(first))
	for name, tt := range map[string]struct {
		scheme, address string // of the first challenge
		want            string
	}{
		"an address":         {"Bearer", first, first},
		"the longest":        {"Bearer", longest, longest},
		"one that is longer": {"Bearer", longest + "x", second},
		"clear text":         {"Bearer", "http://a.example/first", second},
		"with a name":        {"Bearer", "https://b.example@a.example/first", second},
		"another scheme":     {"Basic", first, second},
	} {
		c := readChallenge(http.Header{"Www-Authenticate": {
			tt.scheme + ` resource_metadata="` + tt.address + `"`, `Bearer resource_metadata="` + second + `"`,
		}})
		if c.Metadata != tt.want {
			t.Errorf("%s: %.100q of %d bytes, want %.100q", name, c.Metadata, len(c.Metadata), tt.want)
		}
	}
}

// TestChallengeOfTooManyPartsIsIgnored, as is all that comes with it.
func TestChallengeOfTooManyPartsIsIgnored(t *testing.T) {
	const address = "https://a.example/metadata"
	for commas, want := range map[int]string{maxCommas: address, maxCommas + 1: ""} {
		c := readChallenge(http.Header{"Www-Authenticate": {
			`Bearer resource_metadata="` + address + `"` + strings.Repeat(`, k="v"`, commas/2),
			`Basic realm="x"` + strings.Repeat(`, k="v"`, commas-commas/2),
		}})
		if c.Metadata != want {
			t.Errorf("%d commas: %q, want %q", commas, c.Metadata, want)
		}
	}
}
