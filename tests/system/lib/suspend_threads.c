/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * suspend_threads [--seed N] PROGRAM...: runs a program, and meanwhile suspends
 * threads of its processes again and again, as a busy machine does.  Each time
 * it suspends one thread, all threads of one process, or all threads of all
 * processes, for a time of up to MOST_MS.  The seed decides which threads, and
 * when; without --seed the seed is random.  suspend_threads ends with a line on
 * stderr that names the seed.
 *
 * A thread is suspended by ptrace(2), so its parent is not told of a stop.  As
 * after SIGSTOP and SIGCONT, some system calls of the thread return EINTR
 * (signal(7)).  Threads that another process traces, or that this user may not
 * trace, are never suspended.
 *
 * The exit status is that of PROGRAM, or 128 plus the number of the signal that
 * has killed PROGRAM.  2: PROGRAM is missing.  127: PROGRAM cannot be executed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GAP_MS = 200,	/* the longest time between two suspensions */
	LEAST_MS = 50,	/* the shortest suspension */
	MOST_MS = 2000, /* the longest one */
	THREADS = 4096, /* how many threads are known at most */
};

struct thread {
	pid_t process, thread;
	pid_t parent; /* the parent of the process */
	bool is_descendant;
	bool is_seized;
	bool is_suspended;
	/* the signal that the thread was about to handle; 0: none */
	int signal;
};

static struct thread thread_list[THREADS];
static int thread_count;
static uint64_t random_state; /* the state of draw_number */

static pid_t main_process;
static int main_status;
static bool main_has_ended;

/* Returns a number below `limit`, by xorshift64*. */
static unsigned draw_number(unsigned limit)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (unsigned)((random_state * 0x2545f4914f6cdd1dull >> 33) % limit);
}

/* ---- the threads of the program's processes ---- */

/* Reads the state and the parent of a thread, as in /proc/PID/stat.  False:
 * there is no such thread. */
static bool read_stat(pid_t process, pid_t thread, char *state, int *parent)
{
	char path[64], text[512] = "", *end;
	bool is_read;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)process,
		 (int)thread);
	f = fopen(path, "r");
	if (!f)
		return false;
	is_read = fgets(text, sizeof(text), f);
	fclose(f);
	end = strrchr(text, ')');
	return is_read && end && sscanf(end + 1, " %c %d", state, parent) == 2;
}

static void list_process(pid_t process)
{
	char path[64], state;
	int parent = 0;
	const struct dirent *e;
	DIR *d;

	read_stat(process, process, &state, &parent);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	d = opendir(path);
	while (d && thread_count < THREADS && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			thread_list[thread_count++] = (struct thread){
				.process = process,
				.thread = (pid_t)strtol(e->d_name, NULL, 10),
				.parent = parent};
	if (d)
		closedir(d);
}

static bool is_descendant(pid_t process)
{
	for (int i = 0; i < thread_count; i++)
		if (thread_list[i].process == process)
			return thread_list[i].is_descendant;
	return false;
}

/* Marks the descendants of this process.  A process may stand before its
 * parent, so the list is read until nothing changes. */
static void mark_descendants(void)
{
	bool changes = true;

	while (changes) {
		changes = false;
		for (int i = 0; i < thread_count; i++) {
			struct thread *t = &thread_list[i];

			if (!t->is_descendant &&
			    (t->parent == getpid() || is_descendant(t->parent)))
				t->is_descendant = changes = true;
		}
	}
}

static void list_threads(void)
{
	int kept = 0;
	const struct dirent *e;
	DIR *d = opendir("/proc");

	thread_count = 0;
	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			list_process((pid_t)strtol(e->d_name, NULL, 10));
	if (d)
		closedir(d);
	mark_descendants();
	for (int i = 0; i < thread_count; i++)
		if (thread_list[i].is_descendant)
			thread_list[kept++] = thread_list[i];
	thread_count = kept;
}

/* ---- the suspensions ---- */

/* Notes the end of a child. */
static void note_end(pid_t process, int status)
{
	if (process != main_process)
		return;
	main_status = status;
	main_has_ended = true;
}

static void seize_thread(struct thread *t)
{
	t->is_seized = !ptrace(PTRACE_SEIZE, t->thread, NULL, NULL);
	if (t->is_seized)
		ptrace(PTRACE_INTERRUPT, t->thread, NULL, NULL);
}

static void release_thread(pid_t thread, int signal)
{
	ptrace(PTRACE_DETACH, thread, NULL, (void *)(intptr_t)signal);
}

/* Handles a status of waitpid(2): the end of a child or of a seized thread, or
 * the suspension of a seized thread.  Releases a thread that is not in the
 * list: it was suspended late (is_out_of_reach). */
static void take_status(pid_t thread, int status)
{
	bool is_stopped = WIFSTOPPED(status), is_listed = false;
	int signal = is_stopped && status >> 16 != PTRACE_EVENT_STOP
			     ? WSTOPSIG(status)
			     : 0;

	if (!is_stopped)
		note_end(thread, status);
	for (int i = 0; i < thread_count; i++) {
		struct thread *t = &thread_list[i];

		if (t->thread != thread)
			continue;
		is_listed = true;
		t->is_seized = t->is_suspended = is_stopped;
		t->signal = signal;
	}
	if (is_stopped && !is_listed)
		release_thread(thread, signal);
}

/* Returns whether a wait for the thread's suspension might not end while other
 * threads are suspended.  Either the thread has ended: waitpid(2) reports the
 * end of a process's first thread only after those of its other threads.  Or
 * the thread is in a system call that no signal interrupts: vfork(2) lasts
 * until the child executes a program. */
static bool is_out_of_reach(const struct thread *t)
{
	char state;
	int parent;

	return !read_stat(t->process, t->thread, &state, &parent) ||
	       strchr("ZXD", state);
}

/* Waits until each seized thread is suspended or out of reach. */
static void await_stops(void)
{
	const struct timespec step = {.tv_nsec = 1000000};
	bool waits = true;
	pid_t thread;
	int status;

	while (waits) {
		while ((thread = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
			take_status(thread, status);
		waits = false;
		for (int i = 0; i < thread_count && !waits; i++)
			waits = thread_list[i].is_seized &&
				!thread_list[i].is_suspended &&
				!is_out_of_reach(&thread_list[i]);
		if (waits)
			nanosleep(&step, NULL);
	}
}

/* Removes from the list the threads that are not to be suspended. */
static void choose_threads(void)
{
	const struct thread one =
		thread_list[draw_number((unsigned)thread_count)];
	unsigned kind = draw_number(3);
	int kept = 0;

	for (int i = 0; i < thread_count; i++)
		if (kind == 2 || thread_list[i].thread == one.thread ||
		    (kind == 1 && thread_list[i].process == one.process))
			thread_list[kept++] = thread_list[i];
	thread_count = kept;
}

static struct timespec time_of(unsigned ms)
{
	return (struct timespec){.tv_sec = ms / 1000,
				 .tv_nsec = ms % 1000 * 1000000};
}

/* Sleeps for ms milliseconds, or until a child ends.  Each suspension leaves a
 * SIGCHLD pending, which must not end the sleep. */
static void sleep_between(unsigned ms)
{
	const struct timespec time = time_of(ms), none = time_of(0);
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &none);
	sigtimedwait(&child, NULL, &time);
}

/* Suspends some threads for a time.  Returns whether there were any. */
static bool suspend_some(void)
{
	unsigned much = draw_number(1000);
	/* the square makes short suspensions more frequent */
	const struct timespec time = time_of(
		LEAST_MS + (MOST_MS - LEAST_MS) * (much * much / 1000) / 1000);

	list_threads();
	if (!thread_count)
		return false;
	choose_threads();
	for (int i = 0; i < thread_count; i++)
		seize_thread(&thread_list[i]);
	await_stops();
	nanosleep(&time, NULL);
	for (int i = 0; i < thread_count; i++)
		if (thread_list[i].is_suspended)
			release_thread(thread_list[i].thread,
				       thread_list[i].signal);
	return true;
}

/* Takes the statuses of children, and of threads that ended while they were
 * suspended.  Processes whose parents have ended are children of this process,
 * too. */
static void reap_children(void)
{
	pid_t thread;
	int status;

	thread_count = 0;
	while ((thread = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		take_status(thread, status);
}

static _Noreturn void run_program(char **argv, const sigset_t *mask)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	fprintf(stderr, "suspend_threads: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int main(int argc, char **argv)
{
	bool is_given = argc > 2 && !strcmp(argv[1], "--seed");
	unsigned suspensions = 0;
	uint64_t seed = 0;
	sigset_t child, mask;

	argv += is_given ? 3 : 1;
	if (!*argv)
		return 2;
	if (is_given)
		seed = strtoull(argv[-1], NULL, 10);
	else if (getrandom(&seed, 4, 0) < 0)
		seed = (uint64_t)time(NULL);
	random_state = seed * 0x9e3779b97f4a7c15ull | 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &mask);
	main_process = fork();
	if (main_process < 0)
		return 127;
	if (!main_process)
		run_program(argv, &mask);
	for (;;) {
		sleep_between(draw_number(GAP_MS));
		reap_children();
		if (main_has_ended)
			break;
		suspensions += suspend_some();
	}
	fprintf(stderr, "suspend_threads: seed %llu, %u suspensions\n",
		(unsigned long long)seed, suspensions);
	return WIFSIGNALED(main_status) ? 128 + WTERMSIG(main_status)
					: WEXITSTATUS(main_status);
}
