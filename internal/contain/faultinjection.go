package contain

import "sync/atomic"

// faults decides where tests panic. It is nil in a program: only tests call Inject,
// and the binary that the build tag faults makes for them.
var faults atomic.Pointer[func(point string) bool]

// Inject makes each point and each contained unit of work panic for which f returns
// true, until the test has ended. A unit of work is the point of its name, at its end.
// f is called by many goroutines.
func Inject(t interface{ Cleanup(func()) }, f func(point string) bool) {
	if !faults.CompareAndSwap(nil, &f) {
		panic("faults are injected already: do not run such tests in parallel")
	}
	t.Cleanup(func() { faults.Store(nil) })
}

// Point is a place at which tests panic, while a lock is held or an answer computed.
func Point(name string) {
	if f := faults.Load(); f != nil && (*f)(name) {
		panic(fault(name))
	}
}

// A fault is what Inject makes panic.
type fault string

// injected returns what was recovered, or the fault to inject in its place.
func injected(recovered any, work string) any {
	if f := faults.Load(); recovered == nil && f != nil && (*f)(work) {
		return fault(work)
	}
	return recovered
}
