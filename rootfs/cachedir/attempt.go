package cachedir

import (
	"os"
	"time"
)

// retryAfter is how long an attempt that failed is not repeated.
const retryAfter = time.Hour

// Due reports whether an attempt that failed may be repeated: file was written when it did.
func Due(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && time.Since(info.ModTime()) > retryAfter
}
