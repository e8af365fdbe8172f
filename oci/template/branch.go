package template

// #include <stddef.h>
// extern const char __start_branch_code[], __stop_branch_code[]; // the linker's
// extern long toolcell_branch(unsigned long, void *);
// static size_t size(void) { return __stop_branch_code - __start_branch_code; }
// static size_t entry(void) { return (const char *)toolcell_branch - __start_branch_code; }
import "C"

import "unsafe"

// branchCode gives the machine code of branch.c, for templates, and where in it
// toolcell_branch begins.
func branchCode() (code []byte, entry int) {
	return C.GoBytes(unsafe.Pointer(&C.__start_branch_code), C.int(C.size())), int(C.entry())
}
