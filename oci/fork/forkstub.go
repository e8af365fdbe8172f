package fork

// #include <stddef.h>
// extern const char __start_fork_stub[], __stop_fork_stub[]; // the linker's
// extern long toolcell_fork_stub(unsigned long, void *);
// static size_t size(void) { return __stop_fork_stub - __start_fork_stub; }
// static size_t entry(void) { return (const char *)toolcell_fork_stub - __start_fork_stub; }
import "C"

import "unsafe"

// forkStub returns the machine code of forkstub.c, for templates, and the
// offset of toolcell_fork_stub in it.
func forkStub() (code []byte, entry int) {
	return C.GoBytes(unsafe.Pointer(&C.__start_fork_stub), C.int(C.size())), int(C.entry())
}
