//go:build !race

package boundtest

const raceEnabled = false
