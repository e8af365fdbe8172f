// Package retry reads when a server wants to be asked again.
package retry

import (
	"net/http"
	"strconv"
	"time"
)

// After returns how long a server asks to wait, in seconds or until a date (RFC 9110, section
// 10.2.3): at most some 68 years, and 0 if it does not say.
func After(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	seconds, _ := strconv.ParseUint(value, 10, 31) // the most if there are more
	return time.Duration(seconds) * time.Second
}
