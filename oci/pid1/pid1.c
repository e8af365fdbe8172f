// The first process of every sandbox, and the stage before it where a sandbox
// needs one. Both are this program again (pid1.go, nesteduserns.go say when), and both
// act here, in a constructor: before the Go runtime, which takes milliseconds
// to start and has several threads from its first line on.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	dprintf(2, "toolcell: %s: %s\n", what, strerror(errno));
	_exit(125);
}

// Landlock (Documentation/userspace-api/landlock.rst) as a second lock: if a
// mount were there or writable by mistake, or a descriptor of the host's left
// open, the code still reads only what is of its sandbox, and writes only to the
// places that are its own. The numbers are the kernel's; headers are often older.
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif
#define LL_EXECUTE (1ULL << 0)
#define LL_WRITE_FILE (1ULL << 1)
#define LL_READ_FILE (1ULL << 2)
#define LL_READ_DIR (1ULL << 3)
#define LL_REMOVE (1ULL << 4 | 1ULL << 5)
#define LL_MAKE_DEVICE (1ULL << 6 | 1ULL << 11)
#define LL_MAKE (1ULL << 7 | 1ULL << 8 | 1ULL << 9 | 1ULL << 10 | 1ULL << 12)
#define LL_REFER (1ULL << 13)
#define LL_TRUNCATE (1ULL << 14)
#define LL_IOCTL_DEV (1ULL << 15)
#define LL_OF_FILES (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE) // the others are for directories
#define LL_SCOPES (1ULL << 0 | 1ULL << 1) // abstract sockets, signals
#define LL_QUIET (1U << 0 | 1U << 2)      // nothing in the host's audit log, of this domain and of those within

struct ll_ruleset {
	uint64_t fs, net, scoped;
};

struct ll_path {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

static void allow(int rules, const char *path, uint64_t access)
{
	struct ll_path p = {access, open(path, O_PATH | O_CLOEXEC)};

	if (p.parent < 0)
		return; // what is not there needs no rule
	if (syscall(__NR_landlock_add_rule, rules, 1, &p, 0) < 0)
		die("adding a Landlock rule");
	close(p.parent);
}

// allow_list allows what the host names, "/a:/b" (spec/mounts.go).
static void allow_list(int rules, char *paths, uint64_t access)
{
	struct stat st;

	for (char *path = strtok(paths, ":"); path != NULL; path = strtok(NULL, ":"))
		if (stat(path, &st) == 0)
			allow(rules, path, S_ISDIR(st.st_mode) ? access : access & LL_OF_FILES);
}

// landlock lets the code read what is listed, and write to its own places and
// what is listed.
static void landlock(char *readable, char *writable)
{
	long abi = syscall(__NR_landlock_create_ruleset, NULL, 0, 1);
	uint64_t own = LL_WRITE_FILE | LL_REMOVE | LL_MAKE | LL_REFER;
	struct ll_ruleset r = {0, 0, 0};
	int rules;

	// Version 1 refuses every rename from one directory to another.
	if (abi < 2)
		return;
	if (abi >= 3)
		own |= LL_TRUNCATE;
	r.fs = own | LL_MAKE_DEVICE | LL_EXECUTE | LL_READ_FILE | LL_READ_DIR;
	if (abi >= 5)
		r.fs |= LL_IOCTL_DEV;
	if (abi >= 6)
		r.scoped = LL_SCOPES;
	rules = syscall(__NR_landlock_create_ruleset, &r, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
	if (rules < 0)
		die("making a Landlock ruleset");
	own |= LL_READ_FILE;
	// A rule holds for all below, also for what is mounted there later. So / is
	// for its names only.
	allow(rules, "/", LL_READ_DIR);
	allow(rules, "/proc", LL_READ_FILE);
	allow(rules, "/tmp", own);
	allow(rules, "/workspace", own);
	allow(rules, "/dev/shm", own);
	allow(rules, "/dev", own & LL_OF_FILES); // /dev/null
	allow_list(rules, readable, LL_READ_FILE | LL_EXECUTE);
	allow_list(rules, writable, own);
	if (syscall(__NR_landlock_restrict_self, rules, abi >= 7 ? LL_QUIET : 0) < 0)
		die("entering the Landlock domain");
	close(rules);
}

// MAX_SOCKETS bounds the sockets of one order: the kernel passes at most 253
// descriptors with a message (SCM_MAX_FD). pid1.go has the same bound.
#define MAX_SOCKETS 250

// send_descriptors sends the host up to MAX_SOCKETS descriptors.
static int send_descriptors(int to, const int *fds, int n)
{
	char byte = 0, control[CMSG_SPACE(MAX_SOCKETS * sizeof *fds)] = {0};
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof *fds)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof *fds);
	memcpy(CMSG_DATA(c), fds, n * sizeof *fds);
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

// send_ends sends the host, over the lifeline, its end of the control socket
// and /workspace: what the code leaves there can be read for as long as the host
// keeps the descriptor, however soon the sandbox ends.
static void send_ends(int lifeline, int socket)
{
	int fds[2] = {socket, open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC)};

	if (fds[1] < 0)
		die("opening /workspace");
	if (send_descriptors(lifeline, fds, 2) < 0)
		die("handing out the control socket");
	close(fds[1]);
}

// A place is where the host wants a socket: SOCK_STREAM for a listener or
// SOCK_DGRAM, and the port and the address as the network has them.
struct place {
	uint16_t type, port;
	uint32_t address;
};

static int open_socket(struct place p)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = p.port, .sin_addr.s_addr = p.address};
	int one = 1, fd = socket(AF_INET, p.type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	// Connections of an earlier run that linger must not keep the port (tcp(7),
	// TIME_WAIT).
	if (p.type == SOCK_STREAM && p.port != 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && (p.type != SOCK_STREAM || listen(fd, SOMAXCONN) == 0))
		return fd;
	close(fd);
	return -1;
}

// send_sockets makes sockets on the sandbox's own loopback, where only its
// processes reach them, and sends them to the host, which has written to reply
// where it wants them. Those that cannot be had are left out: code may use the same
// port.
static void send_sockets(int reply)
{
	struct place wanted[MAX_SOCKETS];
	ssize_t size = recv(reply, wanted, sizeof wanted, MSG_DONTWAIT);
	int fds[MAX_SOCKETS], n = 0;

	for (ssize_t i = 0; i < size / (ssize_t)sizeof *wanted; i++) {
		fds[n] = open_socket(wanted[i]);
		if (fds[n] >= 0)
			n++;
	}
	if (n > 0)
		send_descriptors(reply, fds, n);
	while (n > 0)
		close(fds[--n]);
	close(reply);
}

// resolver is the sandbox's resolv.conf, which the code sees read-only.
// container/init.go or fork.py opens it for pid 1, beside the lifeline.
static int resolver;

// write_resolver says in there whether names can be asked for. Without a name server,
// musl would wait for one; with a timeout of 0 it hears none. Both texts are as long, so
// that they take no more memory, and no reader sees a part of one.
static void write_resolver(int names)
{
	static const char with[] = "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n";
	static const char without[] = "# no name server now\noptions timeout:0 attempts:1\n";

	_Static_assert(sizeof with == sizeof without, "the texts differ in length");
	if (pwrite(resolver, names ? with : without, sizeof with - 1, 0) < 0)
		die("writing resolv.conf");
}

static void no_op(int sig) { (void)sig; }

// begin is the end of a pipe from which the program of a server waits to read:
// its network has to be there before it runs. -1 if nothing waits.
static int begin = -1;

// stop_again is in how many milliseconds SIGSTOP is sent once more; 0 while the
// host wants nothing stopped.
static long stop_again;

// receive_order returns an order of the host, and the descriptor that came with it or
// -1. It exits if the host has hung up.
static char receive_order(int lifeline, int *with)
{
	char order, control[CMSG_SPACE(sizeof *with)];
	struct iovec data = {&order, 1};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c;

	if (recvmsg(lifeline, &m, MSG_CMSG_CLOEXEC) != 1)
		_exit(128 + SIGKILL);
	*with = -1;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof *with))
		memcpy(with, CMSG_DATA(c), sizeof *with);
	return order;
}

// obey carries out an order of the host.
static void obey(int lifeline)
{
	int reply;
	char order = receive_order(lifeline, &reply);

	switch (order) {
	case 'l':
		send_sockets(reply);
		return;
	case 'n':
	case 'o':
		write_resolver(order == 'n');
		return;
	case 'b':
		if (begin >= 0 && write(begin, &order, 1) == 1)
			close(begin);
		begin = -1;
		return;
	}
	stop_again = order == 's';
	kill(-1, stop_again ? SIGSTOP : SIGCONT); // all but ourselves (kill(2))
}

// wait_for_child sleeps until a process ends, and carries out orders of the host.
// SIGCHLD is blocked but in here: none can be missed.
//
// Processes that continue each other without end, or are continued by the kernel
// as their parents end, may outlive one SIGSTOP, but hardly several. So it is sent
// again, ever more rarely, down to once a second.
static void wait_for_child(int lifeline)
{
	struct timespec again = {stop_again / 1000, stop_again % 1000 * 1000000};
	struct pollfd host = {lifeline, POLLIN, 0};
	sigset_t waiting;

	sigfillset(&waiting);
	sigdelset(&waiting, SIGCHLD);
	if (ppoll(&host, 1, stop_again ? &again : NULL, &waiting) > 0) {
		obey(lifeline);
	} else if (stop_again) {
		kill(-1, SIGSTOP);
		stop_again = stop_again < 500 ? 2 * stop_again : 1000;
	}
}

// reap_until_exit is the life of pid 1: it collects every process that ends, until the child
// has, whose exit status it gives, or the host hangs up. When it ends the
// kernel ends everything else in the sandbox.
static int reap_until_exit(pid_t child, int lifeline)
{
	pid_t pid;
	int status;

	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == child)
				return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		wait_for_child(lifeline);
	}
}

// block_signals leaves SIGCHLD to be waited for, and lets no other disturb.
static void block_signals(sigset_t *before)
{
	struct sigaction collect = {.sa_handler = no_op};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, before);
	sigaction(SIGCHLD, &collect, NULL);
}

// adopt is pid 1 of a sandbox that was forked from a template: the code's
// process is its child already (fork.py). The host does not collect its exit
// status, since it is the template's child, so pid 1 sends it over the lifeline;
// by then nothing but pid 1 is left. What remains takes its time, and goes when
// the host hangs up.
static void adopt(const char *what)
{
	int lifeline, end, child;
	unsigned char status;

	if (sscanf(what, "%d:%d:%d", &lifeline, &end, &child) != 3)
		_exit(125);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		die("hiding pid 1");
	prctl(PR_SET_NAME, "toolcell", 0, 0, 0); // pid1Name
	block_signals(NULL);
	resolver = lifeline + 1;
	write_resolver(0);
	// Only now that pid 1 is opaque does the host get what starts the code.
	send_ends(lifeline, end);
	for (int fd = 0; fd <= end || fd <= lifeline; fd++)
		if (fd != lifeline && fd != resolver)
			close(fd);
	status = reap_until_exit(child, lifeline);
	kill(-1, SIGKILL); // all but ourselves (kill(2))
	while ((child = waitpid(-1, NULL, WNOHANG)) >= 0)
		if (child == 0)
			wait_for_child(lifeline);
	if (write(lifeline, &status, 1) == 1)
		for (;;)
			wait_for_child(lifeline);
	_exit(128 + SIGKILL);
}

// limit_files sets how many descriptors this process may have. Without a number
// it is as many as the host allows.
static void limit_files(rlim_t n)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		die("reading the limit on descriptors");
	l.rlim_cur = n > 0 ? n : l.rlim_max;
	if (n > 0)
		l.rlim_max = n;
	if (setrlimit(RLIMIT_NOFILE, &l) < 0)
		die("limiting descriptors");
}

// take_variable returns a copy of a variable, to be written in.
static char *take_variable(const char *name)
{
	const char *value = getenv(name);
	char *copy = strdup(value == NULL ? "" : value);

	if (copy == NULL)
		die(name);
	return copy;
}

// program_environment returns the variables that the program gets: those that the
// host has named as its own (spec.go, hiddenFromStages).
static char **program_environment(void)
{
	static const char own[] = "_TOOLCELL_ENV_";
	size_t n = 0;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = calloc(n + 1, sizeof *env);
	if (env == NULL)
		die("the environment");
	n = 0;
	for (char **each = environ; *each != NULL; each++)
		if (strncmp(*each, own, sizeof own - 1) == 0)
			env[n++] = *each + sizeof own - 1;
	return env;
}

// run_pid1 is the first process. The code's process has the same user id, so
// pid 1 makes itself opaque before there is one: it cannot be traced, and its
// memory, descriptors and environment cannot be opened (prctl(2),
// PR_SET_DUMPABLE).
//
// A template (fork.py) is to mount and to make namespaces, which no process in
// a Landlock domain may, and runs no code of the user's.
static void run_pid1(char **argv, int lifeline, int control, int template, int held, rlim_t files, int niceness)
{
	sigset_t before;
	pid_t child;
	int own, fd, pair[2], gate[2];
	char *readable = take_variable("_TOOLCELL_READ"), *writable = take_variable("_TOOLCELL_WRITE");
	char **env = program_environment();

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		die("hiding pid 1");
	prctl(PR_SET_NAME, "toolcell", 0, 0, 0); // pid1Name
	limit_files(0); // the code's limit would let others keep us from sending (spec/limits.go)
	// Both keep out of the way, and out of the program.
	own = fcntl(lifeline, F_DUPFD_CLOEXEC, lifeline + 8);
	resolver = fcntl(lifeline + 1, F_DUPFD_CLOEXEC, own + 1);
	if (own < 0 || resolver < 0)
		die("the lifeline");
	close(lifeline);
	close(lifeline + 1);
	// Made here, and not by the host: a socket belongs for ever to the network
	// namespace it was made in, and answers questions about it.
	if (control) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			die("making the control socket");
		send_ends(own, pair[0]);
	}
	if (held) {
		if (pipe2(gate, O_CLOEXEC) < 0 || (begin = fcntl(gate[1], F_DUPFD_CLOEXEC, resolver + 1)) < 0)
			die("the pipe that a server waits for");
		close(gate[1]);
	}
	block_signals(&before);
	write_resolver(0);
	// Programs tell from its pid that a process was forked. The code's is 2,
	// so the template's is another.
	if (template && (child = fork()) == 0)
		_exit(0);
	child = fork();
	if (child < 0)
		die("starting the program");
	if (child == 0) {
		signal(SIGCHLD, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (control && pair[1] == lifeline)
			fcntl(lifeline, F_SETFD, 0);
		else if (control && dup2(pair[1], lifeline) < 0)
			die("placing the control socket");
		if (!template) {
			limit_files(files);
			nice(niceness);
			landlock(readable, writable);
		}
		if (held) {
			char now;

			close(begin); // else nothing would end the wait if pid 1 went
			if (read(gate[0], &now, 1) != 1)
				_exit(125);
		}
		environ = env; // whose PATH counts, for a server's command without a slash
		execvp(argv[0], argv);
		dprintf(2, "toolcell: running %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	for (fd = 0; fd < own; fd++)
		close(fd); // the code's, not ours
	_exit(reap_until_exit(child, own));
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

// nest_user_namespace is the stage before: a process with more than one thread
// could not make a user namespace for itself.
static void nest_user_namespace(const char *ids)
{
	unsigned int uid, gid, hide;
	char line[64];

	if (sscanf(ids, "%u:%u:%u", &uid, &gid, &hide) != 3)
		_exit(125);
	if (unshare(CLONE_NEWUSER | (hide ? CLONE_NEWNS : 0)) < 0)
		die("nesting a user namespace");
	// Without this an unprivileged gid_map is refused (user_namespaces(7)).
	put("/proc/self/setgroups", "deny");
	snprintf(line, sizeof line, "%u 0 1", uid);
	put("/proc/self/uid_map", line);
	snprintf(line, sizeof line, "%u 0 1", gid);
	put("/proc/self/gid_map", line);
	// The /proc that is there so far shows the processes of the host. It is
	// covered for good: nothing in here will have the right to uncover it.
	if (hide && mount("tmpfs", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555") < 0)
		die("covering /proc");
}

// glibc gives constructors what main gets. Those with a number run before those
// without, as nsenter's is (libcontainer), which acts on variables of its own.
__attribute__((constructor(101))) static void before_go(int argc, char **argv)
{
	const char *ids = getenv("_TOOLCELL_NEST"), *lifeline = getenv("_TOOLCELL_PID1"), *child = getenv("_TOOLCELL_ADOPT");

	if (ids != NULL)
		nest_user_namespace(ids);
	else if (child != NULL)
		adopt(child);
	else if (lifeline != NULL && argc > 1) {
		int fd, control, template, held, niceness;
		unsigned long files;

		if (sscanf(lifeline, "%d:%d:%d:%d:%lu:%d", &fd, &control, &template, &held, &files, &niceness) != 6)
			_exit(125);
		run_pid1(argv + 1, fd, control, template, held, files, niceness);
	}
}
