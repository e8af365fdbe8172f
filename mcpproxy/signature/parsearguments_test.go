package signature

import (
	"encoding/json"
	"testing"
)

func TestNoArgumentsMayBeSaidInManyWays(t *testing.T) {
	for _, raw := range []string{"", " \n", "null", " null "} {
		if got, err := ParseArguments(json.RawMessage(raw)); err != nil || len(got) != 0 {
			t.Errorf("%q by name: %v, %v", raw, got, err)
		}
		if got, err := ParseList(json.RawMessage(raw)); err != nil || len(got) != 0 {
			t.Errorf("%q by position: %s, %v", raw, got, err)
		}
	}
}

func TestArgumentsOfAnotherKindAreNamed(t *testing.T) {
	for raw, want := range map[string][2]string{
		`[1]`:      {"the arguments are not a JSON object", ""},
		`{"a":1}`:  {"", "the positional arguments are not a JSON array"},
		`5`:        {"the arguments are not a JSON object", "the positional arguments are not a JSON array"},
		`{"a":1`:   {"the arguments are not JSON", "the positional arguments are not a JSON array"},
		`[1`:       {"the arguments are not a JSON object", "the arguments are not JSON"},
		`{"a":1}}`: {"the arguments are not JSON", "the positional arguments are not a JSON array"},
	} {
		_, named := ParseArguments(json.RawMessage(raw))
		_, positional := ParseList(json.RawMessage(raw))
		for i, err := range []error{named, positional} {
			if got := message(err); got != want[i] {
				t.Errorf("%s: %q, want %q", raw, got, want[i])
			}
		}
	}
}

// message is the text of an error, "" if there is none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
