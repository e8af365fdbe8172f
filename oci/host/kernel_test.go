package host

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func TestReadKernelFile(t *testing.T) {
	want, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadKernelFile("/proc/self/limits"); err != nil || string(got) != string(want) {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
	_, err = ReadKernelFile("/proc/self/none")
	if text := "open /proc/self/none: no such file or directory"; !errors.Is(err, fs.ErrNotExist) || err.Error() != text {
		t.Errorf("%v, want %s", err, text)
	}
	if _, err := ReadKernelFile("/proc/self/task"); err == nil {
		t.Error("a folder can be read")
	}
}

func TestNumber(t *testing.T) {
	const status = "Name:\tVmRSS: 9 kB\nVmPTE:\t      44 kB\nVmRSS:\t    1234 kB\nThreads:\tmany\nVmHWM:\t99999999999999999999 kB\n"
	for name, want := range map[string]int64{"VmRSS": 1234, "VmPTE": 44, "Threads": 0, "VmHWM": 0, "FDSize": 0} {
		if got := Number([]byte(status), name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	if got := Number([]byte("max 3\n"), "max"); got != 3 {
		t.Errorf("max = %d, want 3", got)
	}
}
