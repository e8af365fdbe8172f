package contain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
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
	if err := Call("writing", func() error { return want }); !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
}

func TestUndoLetsThePanicGoOn(t *testing.T) {
	var undone []string
	out := logged(t, func() {
		err := Call("a test", func() error {
			defer Undo(func() { undone = append(undone, "panicked") })
			panic("boom")
		})
		if !errors.Is(err, ErrInternal) {
			t.Errorf("the panic became %v", err)
		}
		_ = Call("a test", func() error {
			defer Undo(func() { undone = append(undone, "returned") })
			return nil
		})
	})
	if !slices.Equal(undone, []string{"panicked"}) || !strings.Contains(out, "boom") || !strings.Contains(out, "TestUndoLetsThePanicGoOn") {
		t.Errorf("%q was undone; the log has\n%s", undone, out)
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

// TestPanicOfAHandlerCutsItsResponseShort since a client could take what was sent for
// the whole.
func TestPanicOfAHandlerCutsItsResponseShort(t *testing.T) {
	log := logged(t, func() {
		server := httptest.NewServer(Handler("answering", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/part" {
				_, _ = w.Write([]byte("half of it"))
				_ = http.NewResponseController(w).Flush()
			}
			panic("slice bounds")
		})))
		defer server.Close()
		for _, path := range []string{"/none", "/part"} {
			resp, err := http.Get(server.URL + path)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Errorf("%s: the response is complete", path)
			}
		}
	})
	if strings.Count(log, "slice bounds") != 2 {
		t.Errorf("log = %q, want both panics", log)
	}
}

func TestAbortedResponsesAreNoInternalErrors(t *testing.T) {
	log := logged(t, func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a panic, not an error
				t.Errorf("panic = %v", p)
			}
		}()
		Handler("answering", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).ServeHTTP(nil, nil)
	})
	if log != "" {
		t.Errorf("log = %q", log)
	}
}

func TestPanicOfWhatReportsOneIsContained(t *testing.T) {
	log := logged(t, func() {
		defer Recover("watching", func(error) { panic("send on closed channel") })
		panic("first")
	})
	if !strings.Contains(log, "first") || !strings.Contains(log, "send on closed channel") {
		t.Errorf("log = %q", log)
	}
}

func TestValueDeniesAfterAPanic(t *testing.T) {
	logged(t, func() {
		internal := Value("looking whether an address is internal", true, func() bool { panic("nil") })
		if !internal() {
			t.Error("the panic counts as a no")
		}
	})
}

func TestInjectedFaultsArePanics(t *testing.T) {
	log := logged(t, func() {
		t.Run("injected", func(t *testing.T) {
			Inject(t, func(point string) bool { return point == "deciding" || point == "middle" })
			if err := Call("deciding", func() error { return nil }); err == nil {
				t.Error("a unit of work did not panic")
			}
			if err := Call("asking", func() error { Point("middle"); return nil }); err == nil {
				t.Error("a point did not panic")
			}
			if err := Call("asking", func() error { return nil }); err != nil {
				t.Error("another one did:", err)
			}
		})
		if err := Call("deciding", func() error { return nil }); err != nil {
			t.Error("faults are injected after their test:", err)
		}
	})
	if strings.Count(log, "internal error") != 2 {
		t.Errorf("log = %q", log)
	}
}

func TestAwaitReturnsResultsPanicsAndTheCauseOfTheEnd(t *testing.T) {
	failed := errors.New("failed")
	if got, err := Await(t.Context(), "work", func() (int, error) { return 1, failed }); got != 1 || err != failed { //nolint:errorlint // as it is
		t.Errorf("got %d, %v", got, err)
	}
	log := logged(t, func() {
		if _, err := Await(t.Context(), "work", func() (int, error) { panic("nil map") }); !errors.Is(err, ErrInternal) {
			t.Errorf("a panic is %v", err)
		}
	})
	if !strings.Contains(log, "nil map") {
		t.Errorf("log = %q", log)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	goesOn := make(chan struct{})
	defer close(goesOn)
	cancel(failed)
	if got, err := Await(ctx, "work", func() (int, error) { <-goesOn; return 1, nil }); got != 0 || err != failed { //nolint:errorlint // as it is
		t.Errorf("after the end: %d, %v", got, err)
	}
}
