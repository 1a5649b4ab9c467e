/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread adverb-iw.  The thread waits for listeners of iWARP, for the
 * sockets of connections that no queue pair has yet, for deadlines, and for
 * news of the connections that queue pairs have.  The first object (struct
 * r_iw) starts the thread, which lasts until the process ends or the program
 * closes epoll_fd.  In the second case a later object starts another thread.  A
 * forked child starts its own.
 */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"

#define BUCKETS	  256
#define AT_A_TIME 64 /* epoll events of one epoll_wait(2) */
#define SECOND	  1000000000ull
#define MS	  1000000ull

/* ---- under r_lock ---- */

static struct list table[BUCKETS];	     /* by serial */
static struct list timed = {&timed, &timed}; /* objects with a deadline */
/* No object of `timed` has an earlier deadline. */
static uint64_t due_ns = UINT64_MAX;
static uint64_t last_serial;	     /* of the object that was made last */
static int epoll_fd = -1;	     /* -1: there is no thread */
static uint32_t thread_number;	     /* a thread with another number ends */
static _Thread_local bool is_thread; /* this is a thread adverb-iw */
/* How many forks lie between the first process of the program and this one.  A
 * process changes the number before it has a second thread. */
static uint32_t generation;

/* ---- under `leaf`, the innermost lock ---- */

static pthread_mutex_t leaf = PTHREAD_MUTEX_INITIALIZER;
static struct list news = {&news, &news}; /* objects with news */
static int wake_fd = -1;		  /* an eventfd that wakes the thread */
/* The sockets of all objects, which a child of fork closes: a copy in the child
 * would keep a connection open that this process closes.  A socket is missing
 * here if no memory was left. */
static int *held;
static size_t held_count, held_room;

static void before_fork(void)
{
	pthread_mutex_lock(&leaf);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&leaf);
}

/* Closes the parent's descriptors and empties the lists.  The parent's objects
 * stay allocated, since the child's copies of the ids refer to them. */
static void in_child(void)
{
	pthread_mutex_unlock(&leaf);
	generation++;
	for (size_t i = 0; i < held_count; i++)
		fd_identity_close(held[i]);
	fd_identity_close(epoll_fd);
	fd_identity_close(wake_fd);
	held_count = 0;
	epoll_fd = wake_fd = -1;
	memset(table, 0, sizeof(table));
	list_init(&timed);
	due_ns = UINT64_MAX;
	list_init(&news);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

/* ---- descriptors ---- */

static void hold_fd(int fd)
{
	int *more;

	pthread_mutex_lock(&leaf);
	if (held_count == held_room) {
		more = realloc(held, (held_room + 64) * sizeof(*more));
		if (more) {
			held = more;
			held_room += 64;
		}
	}
	if (held_count < held_room)
		held[held_count++] = fd;
	pthread_mutex_unlock(&leaf);
}

static void release_fd(int fd)
{
	pthread_mutex_lock(&leaf);
	for (size_t i = 0; i < held_count; i++)
		if (held[i] == fd) {
			held[i] = held[--held_count];
			break;
		}
	pthread_mutex_unlock(&leaf);
}

int r_iw_keep_fd(struct r_iw *iw, int fd)
{
	iw->fd = fd_identity_note(fd);
	if (fd >= 0)
		hold_fd(iw->fd);
	return iw->fd;
}

/* Takes the socket from the object.  Returns the descriptor, with its mark. */
static int detach_fd(struct r_iw *iw)
{
	int fd = iw->fd;

	r_iw_watch(iw, 0);
	release_fd(fd);
	iw->fd = -1;
	return fd;
}

int r_iw_give_fd(struct r_iw *iw)
{
	int fd = detach_fd(iw);

	fd_identity_forget(fd);
	return fd;
}

void r_iw_close_fd(struct r_iw *iw)
{
	bool is_ours;
	int fd;

	if (iw->fd < 0)
		return;
	fd = detach_fd(iw);
	is_ours = fd_identity_holds(fd);
	/* If a child has a copy of the descriptor, close(2) does not end the
	 * connection; shutdown(2) does. */
	if (is_ours && iw->state != R_IW_IDLE)
		shutdown(fd, SHUT_RDWR);
	fd_identity_close_if(fd, is_ours);
}

/*
 * The program may have closed epoll_fd or iw->fd just now, and may have files
 * of its own at these numbers.  So both descriptors are checked before a socket
 * is added to the epoll set or its events are changed.  Before a removal only
 * iw->fd is checked, since an epoll set of the program does not have adverb's
 * socket.
 */
void r_iw_watch(struct r_iw *iw, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.u64 = iw->serial};
	int op = !events       ? EPOLL_CTL_DEL
		 : iw->watched ? EPOLL_CTL_MOD
			       : EPOLL_CTL_ADD;

	if (events == iw->watched)
		return;
	iw->watched = 0;
	if (fd_identity_holds(iw->fd) &&
	    (!events || fd_identity_holds(epoll_fd)) &&
	    !epoll_ctl(epoll_fd, op, iw->fd, &e))
		iw->watched = events;
}

/* ---- news ---- */

/* Under `leaf`: makes epoll_wait return in the thread adverb-iw. */
static void wake_thread(void)
{
	uint64_t one = 1;

	if (fd_identity_holds(wake_fd) && write(wake_fd, &one, sizeof(one)) < 0)
		errno = 0; /* EAGAIN: earlier wake-ups are still pending */
}

void r_iw_note_news(struct r_iw *iw, uint32_t bits)
{
	pthread_mutex_lock(&leaf);
	iw->news_bits |= bits;
	pthread_mutex_unlock(&leaf);
}

void r_iw_add_news(struct r_iw *iw, uint32_t bits)
{
	pthread_mutex_lock(&leaf);
	iw->news_bits |= bits;
	/* A thread that has yet to take the earlier news takes these, too. */
	if (list_is_empty(&news))
		wake_thread();
	if (!list_is_linked(&iw->news))
		list_push_tail(&news, &iw->news);
	pthread_mutex_unlock(&leaf);
}

uint32_t r_iw_take_news(struct r_iw *iw)
{
	uint32_t bits;

	pthread_mutex_lock(&leaf);
	bits = iw->news_bits;
	iw->news_bits = 0;
	list_remove(&iw->news);
	pthread_mutex_unlock(&leaf);
	return bits;
}

/* Returns the next object with news, or NULL. */
static struct r_iw *next_news(void)
{
	struct list *n;

	pthread_mutex_lock(&leaf);
	n = list_pop_head(&news);
	pthread_mutex_unlock(&leaf);
	return n ? CONTAINER_OF(n, struct r_iw, news) : NULL;
}

/* ---- objects ---- */

struct r_iw *r_iw_find(uint64_t serial)
{
	struct list *l = &table[serial % BUCKETS];

	if (!l->next)
		return NULL;
	list_for_each (n, l)
		if (CONTAINER_OF(n, struct r_iw, by_serial)->serial == serial)
			return CONTAINER_OF(n, struct r_iw, by_serial);
	return NULL;
}

void r_iw_each(void (*each)(struct r_iw *iw, void *arg), void *arg)
{
	for (int i = 0; i < BUCKETS; i++) {
		if (!table[i].next)
			continue;
		list_for_each (n, &table[i])
			each(CONTAINER_OF(n, struct r_iw, by_serial), arg);
	}
}

bool r_iw_is_foreign(const struct r_iw *iw)
{
	return iw->generation != generation;
}

void r_iw_enter(struct r_iw *iw, enum r_iw_state state,
		const struct r_iw_role *role)
{
	iw->state = state;
	iw->role = role;
}

void r_iw_set_timer(struct r_iw *iw, uint64_t deadline_ns)
{
	list_remove(&iw->timed);
	iw->deadline_ns = deadline_ns;
	if (deadline_ns == UINT64_MAX)
		return;
	list_push_tail(&timed, &iw->timed);
	if (deadline_ns >= due_ns)
		return; /* the thread wakes up at due_ns, or earlier */
	due_ns = deadline_ns;
	if (is_thread)
		return; /* the thread reads due_ns before it waits */
	pthread_mutex_lock(&leaf);
	wake_thread();
	pthread_mutex_unlock(&leaf);
}

/* ---- the thread ---- */

/* Handles an event of the object's socket or, if is_due, the object's
 * deadline. */
static void serve_object(struct r_iw *iw, bool is_due)
{
	if (is_due)
		r_iw_set_timer(iw, UINT64_MAX);
	if (iw->role && iw->role->serve)
		iw->role->serve(iw, is_due);
	else
		r_iw_watch(iw, 0);
}

static struct r_iw *timed_of(struct list *node)
{
	return CONTAINER_OF(node, struct r_iw, timed);
}

/* Handles the deadlines that have come, and sets due_ns to the first of the
 * others. */
static void serve_due(void)
{
	uint64_t now = monotonic_ns();

	if (now < due_ns)
		return;
	due_ns = UINT64_MAX;
	list_for_each_safe (n, &timed)
		if (timed_of(n)->deadline_ns <= now)
			serve_object(timed_of(n), true);
		else
			due_ns = bits_min_u64(due_ns, timed_of(n)->deadline_ns);
}

/* Returns the timeout for epoll_wait(2): the ms that remain until due_ns, or -1
 * if there is no deadline. */
static int wait_ms(void)
{
	uint64_t now = monotonic_ns();

	if (due_ns == UINT64_MAX)
		return -1;
	return due_ns <= now ? 0 : (int)((due_ns - now) / MS) + 1;
}

static void empty_wake_fd(void)
{
	uint64_t tokens;

	if (fd_identity_holds(wake_fd) &&
	    read(wake_fd, &tokens, sizeof(tokens)) < 0)
		errno = 0;
}

static void serve_events(const struct epoll_event *events, int n)
{
	struct r_iw *iw;

	for (int i = 0; i < n; i++) {
		/* There is no object if the event is of wake_fd, which was
		 * added with serial 0, or if an earlier event has freed the
		 * object. */
		iw = r_iw_find(events[i].data.u64);
		if (iw)
			serve_object(iw, false);
		else
			empty_wake_fd();
	}
	while ((iw = next_news()))
		if (iw->role && iw->role->settle)
			iw->role->settle(iw);
	/* A process that was stopped gets EINTR here.  The frames that came
	 * meanwhile are read before their deadlines count. */
	if (n >= 0)
		serve_due();
}

/* Called for an object with a deadline when no thread will serve the object. */
static void give_up(struct r_iw *iw)
{
	if (iw->role && iw->role->lost)
		iw->role->lost(iw);
}

/*
 * The program has closed epoll_fd.  The thread ends and opens no other
 * epoll_fd: the program may be about to open files of its own, and may expect
 * certain descriptor numbers for them.  Connections that only the thread could
 * continue fail.
 */
static void give_up_all(void)
{
	fd_identity_close(epoll_fd);
	epoll_fd = -1;
	r_say("rdma_cm: the program has closed descriptors that belong "
	      "to adverb, so connections of iWARP devices that are not "
	      "established yet fail; let the program close all "
	      "descriptors before it opens a device, not later");
	list_for_each_safe (n, &timed)
		give_up(timed_of(n));
}

/* Waits as epoll_wait(2) does.  The program may close fd meanwhile, and another
 * thread of adverb may then open a set with this number.  This thread tolerates
 * both.  ThreadSanitizer does not see a system call that is made by syscall(2);
 * it would report both as races if this function called epoll_wait. */
static int wait_for_events(int fd, struct epoll_event *events, int ms)
{
	return (int)syscall(SYS_epoll_pwait, fd, events, AT_A_TIME, ms, NULL,
			    sizeof(uint64_t));
}

static void *run_thread(void *arg)
{
	struct epoll_event events[AT_A_TIME];
	int n = 0, fd, ms;

	is_thread = true;
	r_take();
	while ((uint32_t)(uintptr_t)arg == thread_number &&
	       fd_identity_holds(epoll_fd)) {
		fd = epoll_fd;
		ms = wait_ms();
		r_give();
		n = wait_for_events(fd, events, ms);
		if (n > 0)
			r_grow_heap();
		r_take();
		if ((n < 0 && errno != EINTR) ||
		    (uint32_t)(uintptr_t)arg != thread_number)
			break;
		r_hold_tokens();
		serve_events(events, n);
		r_put_tokens();
	}
	if ((uint32_t)(uintptr_t)arg == thread_number)
		give_up_all();
	r_give();
	return NULL;
}

static int create_thread(void)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run_thread,
			     (void *)(uintptr_t)++thread_number);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(thread, "adverb-iw");
	pthread_detach(thread);
	return 0;
}

/* Adds the object's socket to a new epoll_fd. */
static void watch_again(struct r_iw *iw, void *unused)
{
	uint32_t events = iw->watched;

	iw->watched = 0;
	r_iw_watch(iw, events);
}

/* Opens wake_fd, unless it is open.  Returns 0 or -errno. */
static int open_wake_fd(void)
{
	int err = 0;

	pthread_mutex_lock(&leaf);
	if (!fd_identity_holds(wake_fd)) {
		fd_identity_close(wake_fd); /* removes the mark */
		wake_fd = fd_identity_note(
			eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		err = wake_fd < 0 ? -errno : 0;
	}
	pthread_mutex_unlock(&leaf);
	return err;
}

static int open_epoll_fd(void)
{
	fd_identity_close(epoll_fd); /* removes the mark */
	epoll_fd = fd_identity_note(epoll_create1(EPOLL_CLOEXEC));
	return epoll_fd < 0 ? -errno : 0;
}

/* Opens the descriptors that are not open, and starts the thread unless it
 * waits for epoll_fd.  Returns 0 or -errno. */
static int open_thread(bool waits)
{
	struct epoll_event e = {.events = EPOLLIN};
	int err = open_wake_fd();

	if (!err && !waits)
		err = open_epoll_fd();
	if (!err && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &e))
		err = -errno;
	if (!err && !waits)
		err = create_thread();
	return err;
}

/*
 * The program may have closed wake_fd, epoll_fd or both.  Without wake_fd, the
 * thread gets a new wake_fd.  Without epoll_fd, a new thread starts.  A thread
 * that still waits for the closed epoll_fd ends: at once if the old wake_fd is
 * open, and otherwise at its next event or at the end of its wait.
 */
int r_iw_start_thread(void)
{
	bool waits = fd_identity_holds(epoll_fd);
	int err;

	if (waits && fd_identity_holds(wake_fd))
		return 0;
	err = open_thread(waits);
	pthread_mutex_lock(&leaf);
	if (err) {
		fd_identity_close(wake_fd);
		wake_fd = -1;
	}
	wake_thread();
	pthread_mutex_unlock(&leaf);
	if (!waits && err) {
		fd_identity_close(epoll_fd);
		epoll_fd = -1;
	} else if (!waits) {
		r_iw_each(watch_again, NULL);
	}
	return err;
}

struct r_iw *r_iw_new(struct r_id *id)
{
	int err = is_thread ? 0 : r_iw_start_thread();
	struct r_iw *iw = err ? NULL : calloc(1, sizeof(*iw));
	struct list *l;

	if (!iw) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	iw->serial = ++last_serial;
	iw->generation = generation;
	iw->fd = -1;
	iw->deadline_ns = UINT64_MAX;
	iw->id = id;
	list_init(&iw->by_serial);
	list_init(&iw->timed);
	list_init(&iw->news);
	list_init(&iw->half);
	list_init(&iw->queue.halves);
	l = &table[iw->serial % BUCKETS];
	if (!l->next)
		list_init(l);
	list_push_tail(l, &iw->by_serial);
	return iw;
}

void r_iw_free(struct r_iw *iw)
{
	if (!r_iw_is_foreign(iw)) {
		r_iw_close_fd(iw);
		r_iw_take_news(iw);
		list_remove(&iw->timed);
		list_remove(&iw->half);
		list_remove(&iw->by_serial);
	}
	if (iw->start)
		startup_fini(&iw->start->mpa);
	free(iw->start);
	free(iw->sctp);
	free(iw);
}
