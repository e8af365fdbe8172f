package message

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func progressOf(token int64, done int, text string) json.RawMessage {
	message, _ := json.Marshal(text)
	return json.RawMessage(fmt.Sprintf(`{"progressToken":%d,"progress":%d,"total":10,"message":%s}`, token, done, message))
}

// TestProgressIsPaced: twenty at once, then ten a second, whatever the server sends.
func TestProgressIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotifications(func() { t.Error("the tools changed") })
		var got []string
		token, stop := n.Listen(func(done, total float64, text string) { got = append(got, fmt.Sprint(done, total, text)) })
		send := func(times int) {
			for i := range times {
				n.receiveProgress(progressOf(token, i, "a\x1bb"))
			}
			synctest.Wait()
		}
		send(1000)
		if len(got) != 20 || got[0] != "0 10ab" {
			t.Errorf("%d came at once: %v", len(got), got)
		}
		time.Sleep(time.Second)
		send(1000)
		if len(got) != 30 {
			t.Errorf("%d came after a second", len(got)-20)
		}
		for _, params := range []string{`{"progressToken":"one"}`, `{"progressToken":7,"progress":1}`, `{`, `{"progressToken":1.5}`} {
			time.Sleep(time.Second)
			n.receiveProgress(json.RawMessage(params))
		}
		stop()
		send(10)
		if len(got) != 30 {
			t.Errorf("%d came of others or after the end", len(got)-30)
		}
	})
}

// TestProgressGoesToItsCall, which is the one with its token.
func TestProgressGoesToItsCall(t *testing.T) {
	n := NewNotifications(func() {})
	var first, second []string
	one, stopFirst := n.Listen(func(_, _ float64, text string) { first = append(first, text) })
	other, stopSecond := n.Listen(func(_, _ float64, text string) { second = append(second, text) })
	for token, text := range map[int64]string{one: "a", other: "b", 0: "c", other + 1: "d"} {
		msg, err := n.Decode(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":%s}`, progressOf(token, 1, text)), nil)
		if msg != nil || err != nil {
			t.Errorf("the SDK sees %v, %v", msg, err)
		}
	}
	stopFirst()
	stopSecond()
	if !slices.Equal(first, []string{"a"}) || !slices.Equal(second, []string{"b"}) {
		t.Errorf("the first got %v, the second %v", first, second)
	}
}

// TestSlowCallersHoldNothingUp: what they do not take in time is dropped, and stop
// waits for the rest.
func TestSlowCallersHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotifications(func() {})
		came := 0
		token, stop := n.Listen(func(float64, float64, string) { came++; time.Sleep(time.Minute) })
		begun := time.Now()
		for range 300 {
			n.receiveProgress(progressOf(token, 1, ""))
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("the server waited for the caller: %v", took)
		}
		stop()
		if came < 60 || came > 70 || time.Since(begun) < time.Hour {
			t.Errorf("%d came in %v", came, time.Since(begun))
		}
	})
}

func TestRequestsOfAServerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotifications(func() {})
		admitted := func() (count int) {
			for range 1000 {
				if msg, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), nil); err != nil {
					t.Fatal(err)
				} else if msg != nil {
					count++
				}
			}
			return count
		}
		if got := admitted(); got != 100 {
			t.Errorf("%d at once", got)
		}
		time.Sleep(100 * time.Millisecond)
		if got := admitted(); got != 10 {
			t.Errorf("%d after a tenth of a second", got)
		}
		time.Sleep(time.Hour)
		if got := admitted(); got != 100 {
			t.Errorf("%d after an hour", got)
		}
		time.Sleep(time.Hour)
		long := strings.Repeat("7", 2000)
		for _, request := range []string{`{"jsonrpc":"2.0","id":` + long + `,"method":"ping"}`, `{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`} {
			if msg, err := n.Decode(t.Context(), []byte(request), nil); msg != nil {
				t.Errorf("%.60s: %v, %v", request, msg, err)
			}
		}
	})
}

func TestToolsThatChangeAreReported(t *testing.T) {
	changes := 0
	n := NewNotifications(func() { changes++ })
	for method, passed := range map[string]bool{
		"notifications/tools/list_changed": false, "notifications/message": false, "notifications/progress": false, "notifications/roots/list_changed": false,
		"notifications/cancelled": false /* of no request */, "notifications/subscriptions/acknowledged": true,
	} {
		msg, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","method":"`+method+`","params":{}}`), nil)
		if err != nil || (msg != nil) != passed {
			t.Errorf("%s: the SDK sees %v, %v", method, msg, err)
		}
	}
	if changes != 1 {
		t.Errorf("changed %d times", changes)
	}
}
