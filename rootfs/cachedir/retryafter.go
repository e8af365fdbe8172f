package cachedir

import (
	"os"
	"time"
)

// retryAfter is how long a failed attempt is not repeated.
const retryAfter = time.Hour

// Due reports whether a failed attempt may be repeated; file was written at its failure.
func Due(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && time.Since(info.ModTime()) > retryAfter
}
