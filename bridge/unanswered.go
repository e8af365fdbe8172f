package bridge

import (
	"slices"
	"sync"
	"time"
)

// A client that does not answer roots/list is asked again after silentFor, or once it says that
// its roots have changed: each run would wait for it.
const silentFor = time.Minute

// Bounds on questions in results that no call has come back from: in all, and of the same call.
// Calls may run side by side, and be the same.
const (
	maxOpen     = 16
	maxOpenSame = 2
)

// unanswered is what a connection remembers of asking its client for its folder. The zero value
// is ready to use.
type unanswered struct {
	mu      sync.Mutex
	why     error     // what the client was asked for in vain; nil if it was not
	until   time.Time // when it is asked again all the same
	changes int       // that it has told of
	open    []openQuestion
}

// An openQuestion is one in the result of a call.
type openQuestion struct {
	digest string // of the call
	asked  time.Time
}

// get returns why the client is not to be asked now, nil if it is; changes is for set.
func (u *unanswered) get() (changes int, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !time.Now().Before(u.until) {
		u.why = nil
	}
	return u.changes, u.why
}

// set notes that the client has not answered, unless its roots have changed since get.
func (u *unanswered) set(why error, changes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if changes == u.changes {
		u.why, u.until, u.open = why, time.Now().Add(silentFor), nil
	}
}

// reset has the client asked again: its roots have changed, or it has answered.
func (u *unanswered) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why, u.open, u.changes = nil, nil, u.changes+1
}

// ask notes that the result of a call asks. It reports false in place of that if the client does
// not come back with answers: it has had rootsTimeout for one, or the call is made again and again.
func (u *unanswered) ask(digest string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, same := time.Now(), 0
	for _, q := range u.open {
		if now.Sub(q.asked) > rootsTimeout {
			return false
		}
		if q.digest == digest {
			same++
		}
	}
	if len(u.open) == maxOpen || same == maxOpenSame {
		return false
	}
	u.open = append(u.open, openQuestion{digest, now})
	return true
}

// comeBack notes that a call has come back from its question.
func (u *unanswered) comeBack(digest string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.IndexFunc(u.open, func(q openQuestion) bool { return q.digest == digest }); i >= 0 {
		u.open = slices.Delete(u.open, i, i+1)
	}
}
