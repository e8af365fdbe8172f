package retry

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestAfterReadsBothForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for value, want := range map[string]time.Duration{
			"": 0, "7": 7 * time.Second, "-1": 0, "1.5": 0, "soon": 0, "65536": 65536 * time.Second,
			"99999999999999999999":          (1<<31 - 1) * time.Second,
			"Thu, 01 Jan 1970 00:00:00 GMT": 0, "Sat, 01 Jan 2000 00:01:00 GMT": time.Minute, // it is the year 2000
		} {
			resp := &http.Response{Header: http.Header{"Retry-After": {value}}}
			if got := After(resp); got != want {
				t.Errorf("%q: got %s, want %s", value, got, want)
			}
		}
	})
}

func FuzzAfter(f *testing.F) {
	f.Add("30")
	f.Add("Fri, 27 Nov 2099 00:00:00 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if wait := After(&http.Response{Header: http.Header{"Retry-After": {value}}}); wait < 0 {
			t.Errorf("%q asks to wait %s", value, wait)
		}
	})
}
