package main

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWaitableInput: what comes is read, whatever it comes through, and the
// flags of whoever shares it are as they were.
func TestWaitableInput(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	socket, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		in   *os.File
		out  int // where its other end is
		anew bool
	}{
		"file":   {file, -1, false},
		"pipe":   {os.NewFile(uintptr(pipe[0]), "in"), pipe[1], true},
		"socket": {os.NewFile(uintptr(socket[0]), "in"), socket[1], true},
	} {
		t.Run(name, func(t *testing.T) {
			again, end := waitable(tt.in)
			if (again != tt.in) != tt.anew {
				t.Errorf("opened anew: %v", again != tt.in)
			}
			if tt.out >= 0 {
				if _, err := unix.Write(tt.out, []byte("text")); err != nil {
					t.Fatal(err)
				}
				if err := unix.Close(tt.out); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(again); string(got) != "text" || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			end()
			flags, err := unix.FcntlInt(tt.in.Fd(), unix.F_GETFL, 0)
			if err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("its flags are %#x, %v", flags, err)
			}
			tt.in.Close()
		})
	}
}

// TestWaitableInputEnds: a reader that waits is told of the end.
func TestWaitableInputEnds(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	in := os.NewFile(uintptr(pipe[0]), "in")
	defer in.Close()
	again, end := waitable(in)
	ended := make(chan error)
	go func() {
		_, err := again.Read(make([]byte, 1))
		ended <- err
	}()
	end()
	if err := <-ended; err == nil {
		t.Error("it read something")
	}
}
