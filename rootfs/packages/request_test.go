package packages

import (
	"net/http"
	"strings"
	"testing"
)

func TestIndexesHaveAHost(t *testing.T) {
	for _, index := range []string{"http://[::1/simple", "https:///simple", "/simple", ""} {
		_, err := newStore(t).Ensure(t.Context(), Request{Index: index}, nil)
		if err == nil || !strings.Contains(err.Error(), "is not the address of a package index") {
			t.Errorf("%q: got %v", index, err)
		}
	}
}

// TestFilesComeWithTheCredentialOfTheIndex: package fetch tests where else it must not go.
func TestFilesComeWithTheCredentialOfTheIndex(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	x.answers(func(w http.ResponseWriter, r *http.Request) bool {
		ok := r.Header.Get("Authorization") == "Basic c2VjcmV0"
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return !ok
	})
	r := x.request("a")
	if _, err := s.Ensure(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without it: %v", err)
	}
	r.Credential = &Credential{Authorization: "Basic c2VjcmV0"}
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Error(err)
	}
}
