package contain

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// logged runs f and returns what it logs.
func logged(t *testing.T, f func()) string {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	f()
	return log.String()
}

func TestPanicBecomesAnErrorWithItsStackInTheLog(t *testing.T) {
	var err error
	log := logged(t, func() {
		err = Call("counting", func() error { panic("index " + strings.Repeat("9", 10_000)) })
	})
	var p *PanicError
	if !errors.As(err, &p) || len(p.ID) != 8 || strings.Contains(err.Error(), "999") {
		t.Fatalf("error = %v, want one with an ID and without the panic's text", err)
	}
	for _, want := range []string{p.ID, "while=counting", "contain_test.go", "index 99"} {
		if !strings.Contains(log, want) {
			t.Errorf("log has no %q: %s", want, log)
		}
	}
	if strings.Contains(log, strings.Repeat("9", 600)) {
		t.Error("the text of the panic is logged without a bound")
	}
}

func TestErrorsPass(t *testing.T) {
	want := errors.New("no space left")
	if err := Call("writing", func() error { return want }); err != want {
		t.Errorf("error = %v, want %v", err, want)
	}
}

func TestRecoverTellsWhoWaits(t *testing.T) {
	told := make(chan error, 1)
	log := logged(t, func() {
		go func() {
			defer func() { told <- nil }()
			defer Recover("watching", func(err error) { told <- err })
			panic(errors.New("nil map"))
		}()
		if err := <-told; err == nil {
			t.Error("nobody was told of the panic")
		}
	})
	if !strings.Contains(log, "nil map") {
		t.Errorf("log = %q", log)
	}
}
