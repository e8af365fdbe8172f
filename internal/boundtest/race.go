//go:build race

package boundtest

const raceEnabled = true
