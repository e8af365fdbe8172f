// How a template (fork.py) makes a sandbox: as machine code that it is given by
// the host (forkstub.go). The code carries out lists of calls of the C library
// that fork.py has prepared, since Python would copy much of the template's
// memory merely by running: with Python in its place, there are 0.77 of the runs a
// second (docs/architecture.md).
//
// It stands alone: no library, no data, and it may lie anywhere.

#include <sys/syscall.h>

#define STANDS_ALONE __attribute__((section("fork_stub"), noinline))

struct call {
	long (*function)(long, ...);
	long arguments[6];
	long indirect; // of each argument a bit: it is the address of an int
	long least;    // result that is no failure
	int result;
};

struct calls {
	struct call *first;
	long count;
	long failed, error; // number of the call that did, from 1, and why
};

struct fork_stub {
	int *(*error)(void);
	struct calls before;        // in the new process; the last is its fork
	struct calls after, worker; // in the new process and in the fork
};

// kernel makes a call of one argument. It is never a function of its own: two
// processes go on after a clone, on one stack, and only one could return.
#if defined(__x86_64__)
static inline __attribute__((always_inline)) long kernel(long number, long argument)
{
	register long fourth __asm__("r10") = 0, fifth __asm__("r8") = 0;

	__asm__ volatile("syscall"
		: "+a"(number)
		: "D"(argument), "S"(0L), "d"(0L), "r"(fourth), "r"(fifth)
		: "rcx", "r11", "memory");
	return number;
}
#elif defined(__aarch64__)
static inline __attribute__((always_inline)) long kernel(long number, long argument)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = argument;
	register long x1 __asm__("x1") = 0, x2 __asm__("x2") = 0, x3 __asm__("x3") = 0, x4 __asm__("x4") = 0;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
}
#endif

STANDS_ALONE static long argument(struct call *c, int n)
{
	return c->indirect >> n & 1 ? *(int *)c->arguments[n] : c->arguments[n];
}

// carry_out reports whether all went well. It stops at the first failure.
STANDS_ALONE static int carry_out(struct fork_stub *b, struct calls *all)
{
	for (long n = 0; n < all->count; n++) {
		struct call *c = &all->first[n];

		c->result = c->function(argument(c, 0), argument(c, 1), argument(c, 2),
			argument(c, 3), argument(c, 4), argument(c, 5));
		if (c->result < c->least) {
			all->error = *b->error();
			all->failed = n + 1;
			return 0;
		}
	}
	return 1;
}

// become_sandbox is the life of the new process until it is another program.
// It returns in its fork.
STANDS_ALONE static long become_sandbox(struct fork_stub *b)
{
	if (carry_out(b, &b->before)) {
		if (b->before.first[b->before.count - 1].result == 0) {
			carry_out(b, &b->worker);
			return 0;
		}
		carry_out(b, &b->after);
	}
	for (;;)
		kernel(__NR_exit_group, 125);
}

// toolcell_fork_stub makes a process with flags that share the memory and let the caller
// sleep until it is another program or has ended, as after vfork(2). It returns
// the pid to the caller, or a negative error number, and 0 in the worker.
STANDS_ALONE long toolcell_fork_stub(unsigned long flags, struct fork_stub *b)
{
	long pid = kernel(__NR_clone, flags);

	return pid == 0 ? become_sandbox(b) : pid;
}
