/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/local_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/client.h"
#include "broker/steer.h"
#include "engine/engine.h"
#include "host/broker_link.h"
#include "host/host.h"
#include "host/peer_arena.h"
#include "log/env.h"
#include "log/log.h"
#include "memory/lock_owner.h"
#include "memory/peer_maps.h"
#include "memory/space_other.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/list.h"
#include "util/random.h"

/* The longest time for which this process's arena is repaired after the report
 * of a death.  After this time a process that exists and holds a responder lock
 * is assumed not to be dying (peer_death_repair). */
#define PEER_DEATH_NS 1000000000u
#define LOOK_NS	      1000000u /* between two repairs of this process's arena */
/* Once this many peers are known, local_peer_expect asks for no more. */
#define EXPECTED 64
/* The most questions that are outstanding; the broker's socket has room for
 * them. */
#define ASKS 32

/* The QPs of post lock 0 use the first view of a peer. */
#define VIEWS ENGINE_POST_LOCKS

/* Either a local peer and this process's first view of its arena, or a further
 * view of the same arena for the QPs of one post lock. */
struct entry {
	struct local_peer is; /* first: the struct that callers hold */
	/* In a further view: the entry with the first view; else NULL. */
	struct entry *base;
	/* In the first view: the further views by post lock; NULL: none. [0] is
	 * unused. */
	struct entry *views[VIEWS];
	struct hca view;	  /* is.hca refers to it, except in all.self */
	struct space_other space; /* view.space refers to it */
	struct peer_maps peer_maps; /* the peer's memory that is mapped */
	/* The peer's eventfd: owned by the first view, which lends it to the
	 * further views. */
	int peer_wake_fd;
	struct list entries; /* in all.entries */
	struct list idle;    /* linked while no QP uses the peer */
};

enum asked {
	ASKED_NOT, /* no question is outstanding, and no answer is kept */
	ASKED_YES, /* the broker, or the fabric, has not answered yet */
	ASKED_NONE /* the class has no arena that this process can map */
};

static struct {
	bool is_open;	  /* local_peer_is_open */
	bool maps;	  /* the argument of local_peer_open */
	struct hca *own;  /* this process's adapter; borrowed */
	int peer_wake_fd; /* the eventfd by which peers wake this process */
	uint32_t class;	  /* this process's steering class */
	/* Asks for the arena of a class (local_peer_use); NULL: the broker is
	 * asked. */
	bool (*ask)(uint32_t class);
	struct entry self;   /* this process as its own peer */
	struct list entries; /* all peers but `self` */
	uint32_t count;	     /* the length of the list `entries` */
	struct list idle;    /* peers that no QP uses */
	struct entry *latest[STEER_CLASS_MAX + 1]; /* by class, or NULL */
	uint8_t asked[STEER_CLASS_MAX + 1];	   /* enum asked */
	uint32_t questions; /* how many classes are ASKED_YES */
	bool has_news;	    /* local_peer_has_news */
	bool is_repairing;  /* a dead peer may have left work half done */
	/* peer_death_ns: when this process's arena is repaired next.
	 * peer_death_until_ns: when repairs end at the latest; 0: no repair has
	 * begun. */
	uint64_t peer_death_ns, peer_death_until_ns;
} all = {.entries = {&all.entries, &all.entries},
	 .idle = {&all.idle, &all.idle},
	 .peer_wake_fd = -1};

_Static_assert(sizeof(pthread_mutex_t) <=
		       sizeof(((struct hca_shared *)0)->pulse),
	       "the pulse holds a mutex");

/* Returns the robust mutex that the progress thread holds.  Its first word
 * tells hca_is_alive whether the process lives. */
static pthread_mutex_t *pulse_mutex(void)
{
	return (pthread_mutex_t *)(void *)&all.own->shared->pulse;
}

/* If ADVERB_PTRACER is 1, lets other processes of the user access this
 * process's memory even where Yama restricts that. */
static void allow_tracing(void)
{
	const char *value = env_text("ADVERB_PTRACER");

	if (value && !strcmp(value, "1"))
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
}

static bool make_pulse(void)
{
	pthread_mutexattr_t attr;
	bool done;

	if (pthread_mutexattr_init(&attr))
		return false;
	done = !pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) &&
	       !pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
	       !pthread_mutex_init(pulse_mutex(), &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

void local_peer_open(struct hca *own, bool maps)
{
	struct hca_shared *s = own->shared;

	if (env_path() != ENV_PATH_DIRECT || !lock_owner_is_possible())
		return;
	all.own = own;
	all.maps = maps;
	if (!peer_arena_init() || !make_pulse() ||
	    !random_fill(&s->nonce.value, sizeof(s->nonce.value), true))
		return;
	all.peer_wake_fd =
		fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (all.peer_wake_fd < 0)
		return;
	allow_tracing();
	s->pid = (uint32_t)getpid();
	s->nonce.va = (uintptr_t)&s->nonce.value;
	all.self.is = (struct local_peer){
		.hca = own, .pid = getpid(), .is_apart = true};
	all.self.peer_wake_fd = all.peer_wake_fd;
	list_init(&all.self.entries);
	list_init(&all.self.idle);
	all.is_open = true;
}

int local_peer_wake_fd(void)
{
	return all.peer_wake_fd;
}

bool local_peer_is_open(void)
{
	return all.is_open;
}

bool local_peer_maps(void)
{
	return all.is_open && all.maps;
}

int local_peer_begin(void) NO_LOCK_ANALYSIS
{
	if (!all.is_open)
		return 0;
	errno = 0;
	all.own->shared->owner = lock_owner_open();
	if (all.own->shared->owner)
		return -pthread_mutex_lock(pulse_mutex());
	if (broker_link_fd() < 0 && !all.ask)
		return 0; /* this process has no peers */
	return errno ? -errno : -EIO;
}

void local_peer_end(void) NO_LOCK_ANALYSIS
{
	if (all.is_open && all.own->shared->owner)
		pthread_mutex_unlock(pulse_mutex());
}

/* Forgets a peer and its views, but does not unmap the arena. */
static void forget_entry(struct entry *e)
{
	for (uint32_t i = 0; i < VIEWS; i++)
		free(e->views[i]);
	list_remove(&e->entries);
	all.count--;
	list_remove(&e->idle);
	if (all.latest[e->is.class] == e)
		all.latest[e->is.class] = NULL;
	fd_identity_close(e->peer_wake_fd);
	free(e);
}

static void close_view(struct entry *e)
{
	if (e->is.access && hca_is_alive(&e->view))
		access_release(e->is.access);
	peer_maps_fini(&e->peer_maps);
}

static void discard_entry(struct entry *e)
{
	struct arena arena = e->view.arena;

	for (uint32_t i = 0; i < VIEWS; i++)
		if (e->views[i])
			close_view(e->views[i]);
	close_view(e);
	forget_entry(e);
	munmap(arena.base, arena.size);
}

/* Looks at the next idle peer, and discards it if it is dead. */
static void look_at_idle(void)
{
	struct entry *e;

	if (list_is_empty(&all.idle))
		return;
	e = CONTAINER_OF(all.idle.next, struct entry, idle);
	list_remove(&e->idle);
	if (hca_is_alive(&e->view))
		list_push_tail(&all.idle, &e->idle);
	else
		discard_entry(e);
}

/* Discards all idle peers that are dead. */
static void sweep_idle(void)
{
	list_for_each_safe (at, &all.idle) {
		struct entry *e = CONTAINER_OF(at, struct entry, idle);

		if (!hca_is_alive(&e->view))
			discard_entry(e);
	}
}

static void close_all(void)
{
	fd_identity_close(all.peer_wake_fd);
	all.peer_wake_fd = -1;
	all.is_open = all.has_news = false;
	all.ask = NULL;
	all.is_repairing = false;
	all.questions = 0;
	memset(all.asked, ASKED_NOT, sizeof(all.asked));
}

static void close_shares(void)
{
	uint32_t at = 0;
	int fd;

	while ((fd = share_next_fd(all.own, &at)) >= 0)
		fd_identity_close(fd);
}

void local_peer_close(void)
{
	if (all.is_open) {
		/* Waits for the peers inside the arena whose slots do not say
		 * what the peers may touch, and for the peers whose access was
		 * revoked (access_wait).  The destruction of a QP or a region
		 * has waited for the peers that may touch it. */
		access_wait(all.own, ACCESS_SAY);
		close_shares();
		list_for_each_safe (at, &all.entries)
			discard_entry(CONTAINER_OF(at, struct entry, entries));
		lock_owner_close();
	}
	close_all();
}

void local_peer_withdraw(void)
{
	all.own->shared->pid = 0;
	local_peer_close();
}

void local_peer_forget(void)
{
	/* MADV_DONTFORK kept the peers' arenas out of the child, so there is
	 * nothing to unmap. */
	list_for_each_safe (at, &all.entries)
		forget_entry(CONTAINER_OF(at, struct entry, entries));
	close_all();
}

/* Prepares e, which has an access slot, to access the peer's memory. */
static void open_view(struct entry *e)
{
	space_other_init(&e->space, e->is.pid);
	e->space.access = e->is.access;
	peer_maps_init(&e->peer_maps, &e->view, e->is.pid);
	if (all.maps)
		e->space.peer_maps = &e->peer_maps;
	e->view.space = &e->space.space;
	e->is.hca = &e->view;
}

/*
 * Returns the view of the peer `base` for the QPs of one post lock.  The first
 * call for a post lock makes the view.  If there is no memory or no free access
 * slot, returns the first view, which the QPs of several post locks then share.
 */
static struct entry *view_of(struct entry *base, uint32_t post_lock)
{
	struct entry *e = base->views[post_lock];

	if (!post_lock || e || base == &all.self)
		return e ? e : base;
	e = calloc(1, sizeof(*e));
	if (!e)
		return base;
	e->view = base->view;
	e->is.access = access_claim(&e->view);
	if (!e->is.access) {
		free(e);
		return base;
	}
	e->is.pid = base->is.pid;
	e->is.class = base->is.class;
	e->is.is_apart = true;
	e->base = base;
	e->peer_wake_fd = base->peer_wake_fd;
	open_view(e);
	base->views[post_lock] = e;
	return e;
}

/* Maps the arena of a process of this class, and lists the process as an idle
 * peer.  Returns NULL, and the peer owns peer_wake_fd; or the reason of the
 * failure, and the caller keeps peer_wake_fd. */
static const char *adopt_arena(uint32_t class, const struct proto_at *arena,
			       int peer_wake_fd)
{
	struct entry *e = calloc(1, sizeof(*e));
	const char *why;

	if (!e)
		return "this process has no memory for it";
	why = peer_arena_map(&e->view, arena);
	if (why) {
		free(e);
		return why;
	}
	e->is.pid = (int)arena->pid;
	e->is.access = access_claim(&e->view);
	if (!e->is.access) {
		munmap(e->view.arena.base, e->view.arena.size);
		free(e);
		return "too many processes have mapped its arena";
	}
	open_view(e);
	e->view.active_mtu = all.own->active_mtu;
	e->is.class = class;
	e->peer_wake_fd = fd_identity_note(peer_wake_fd);
	list_push_tail(&all.entries, &e->entries);
	all.count++;
	list_push_tail(&all.idle, &e->idle);
	all.latest[class] = e;
	return NULL;
}

/* Makes the requests to this class go by packets.  Prints why, if the user asks
 * for direct requests (env_has_direct).  pid: the peer's process; 0: not
 * known. */
static void refuse_class(uint32_t class, uint32_t pid, const char *why)
{
	char name[24] = "";

	all.asked[class] = ASKED_NONE;
	if (pid)
		snprintf(name, sizeof(name), " (pid %u)", pid);
	if (env_has_direct())
		log_say(LOG_PEER_REFUSED, 0,
			"this process sends packets to another process%s of "
			"this host, which is slower than direct access to that "
			"process's memory: %s",
			name, why);
}

static struct entry *find_entry(uint32_t class)
{
	struct entry *e = all.latest[class];

	if (class == all.class)
		return &all.self;
	return e && hca_is_alive(&e->view) ? e : NULL;
}

/* Forgets the question about a class.  Its answer may still come. */
static void take_back(uint32_t class)
{
	all.questions -= all.asked[class] == ASKED_YES;
	all.asked[class] = ASKED_NOT;
}

void local_peer_answered(const struct client_news *news)
{
	uint32_t class = news->class;
	bool was_asked =
		class <= STEER_CLASS_MAX && all.asked[class] == ASKED_YES;
	const char *why;

	if (was_asked)
		take_back(class);
	if (!all.is_open || class > STEER_CLASS_MAX || find_entry(class) ||
	    (!was_asked && news->arena != CLIENT_ARENA_HERE)) {
		if (news->arena == CLIENT_ARENA_HERE)
			close(news->peer_wake_fd);
		return;
	}
	all.asked[class] = ASKED_NOT;
	switch (news->arena) {
	case CLIENT_ARENA_HERE:
		why = adopt_arena(class, &news->arena_at, news->peer_wake_fd);
		if (why)
			close(news->peer_wake_fd);
		if (why == peer_arena_not_yet)
			return;
		if (why)
			refuse_class(class, news->arena_at.pid, why);
		break;
	case CLIENT_ARENA_NONE:
		refuse_class(class, 0,
			     "it does not share its memory (it belongs to "
			     "another user, captures packets, has "
			     "ADVERB_DIRECT=0, or has too small a limit on "
			     "open files)");
		break;
	case CLIENT_ARENA_GONE: /* needs no message: a process may end */
		all.asked[class] = ASKED_NONE;
		break;
	case CLIENT_ARENA_LATER:
		return;
	}
	all.has_news = true;
}

/* Starts repairs that go on for up to PEER_DEATH_NS, because the broker reports
 * the death of a process while threads of that process may still run. */
void local_peer_died(void)
{
	all.is_repairing = all.is_open;
	all.peer_death_ns = all.peer_death_until_ns = 0;
}

/* Repairs at most once in LOOK_NS, since a polling program calls this function
 * a million times a second. */
bool local_peer_note_death(uint64_t now_ns)
{
	if (!all.is_repairing || now_ns < all.peer_death_ns)
		return all.is_repairing;
	if (!all.peer_death_until_ns)
		all.peer_death_until_ns = now_ns + PEER_DEATH_NS;
	all.peer_death_ns = now_ns + LOOK_NS;
	all.is_repairing =
		!peer_death_repair(all.own) && now_ns < all.peer_death_until_ns;
	if (!all.is_repairing)
		sweep_idle();
	return all.is_repairing;
}

void local_peer_forget_questions(void)
{
	/* While the broker was gone, no deaths were reported. */
	local_peer_died();
	for (uint32_t i = 0; all.questions && i <= STEER_CLASS_MAX; i++)
		if (all.asked[i] == ASKED_YES)
			take_back(i);
}

bool local_peer_is_asking(void)
{
	return all.questions > 0;
}

bool local_peer_has_news(void)
{
	bool has_news = all.has_news;

	all.has_news = false;
	return has_news;
}

void local_peer_note_news(void)
{
	all.has_news = true;
}

void local_peer_give_up(uint32_t class)
{
	if (class <= STEER_CLASS_MAX)
		take_back(class);
}

static bool ask_arena(uint32_t class)
{
	return all.ask ? all.ask(class) : broker_link_ask_arena(class);
}

void local_peer_use(uint32_t own, bool (*ask)(uint32_t class))
{
	all.class = own;
	all.ask = ask;
}

static void note_own_class(void)
{
	if (!all.ask)
		all.class = broker_link_class(broker_link_qpn(0));
}

static enum local_peer_is ask_broker(uint32_t class)
{
	if (all.asked[class] == ASKED_NONE) {
		all.asked[class] = ASKED_NOT;
		return LOCAL_PEER_NEVER;
	}
	if (all.asked[class] == ASKED_NOT && all.questions < ASKS &&
	    ask_arena(class)) {
		all.asked[class] = ASKED_YES;
		all.questions++;
	}
	return LOCAL_PEER_ASKED;
}

enum local_peer_is local_peer_get(uint32_t class, uint32_t post_lock,
				  struct local_peer **n)
{
	struct entry *e;

	if (!all.is_open || !class || class > STEER_CLASS_MAX)
		return LOCAL_PEER_NEVER;
	/* Until the progress thread has begun, peers would find this process
	 * dead. */
	if (!hca_is_alive(all.own))
		return LOCAL_PEER_ASKED;
	note_own_class();
	e = find_entry(class);
	if (!e) {
		look_at_idle(); /* bounds the number of dead idle peers */
		return ask_broker(class);
	}
	list_remove(&e->idle);
	e->is.users++;
	e = view_of(e, post_lock);
	e->is.users += e->base != NULL;
	*n = &e->is;
	return LOCAL_PEER_HERE;
}

void local_peer_expect(uint32_t qpn)
{
	uint32_t class = broker_link_class(qpn);

	if (!all.is_open || !class || class > STEER_CLASS_MAX ||
	    all.count >= EXPECTED || !hca_is_alive(all.own))
		return;
	note_own_class();
	if (find_entry(class))
		return;
	/* local_peer_get has not used the answer that is kept, which may be
	 * about an earlier process of this class. */
	if (all.asked[class] == ASKED_NONE)
		all.asked[class] = ASKED_NOT;
	ask_broker(class);
}

void local_peer_put(struct local_peer *n)
{
	struct entry *e = CONTAINER_OF(n, struct entry, is);

	/* A view without QPs needs no mappings of the peer's memory. */
	if (e->base && !--n->users)
		peer_maps_fini(&e->peer_maps);
	e = e->base ? e->base : e;
	if (--e->is.users || e == &all.self)
		return;
	peer_maps_fini(&e->peer_maps);
	if (hca_is_alive(&e->view))
		list_push_tail(&all.idle, &e->idle);
	else
		discard_entry(e);
}

void local_peer_wake(struct local_peer *n)
{
	struct entry *e = CONTAINER_OF(n, struct entry, is);
	uint64_t one = 1;

	/*
	 * syscall is no cancellation point, but write is one, and a thread that
	 * posts must not be cancelled here.
	 *
	 * The write does not wait, since the eventfd has O_NONBLOCK
	 * (fd_check_is_wake).  A hostile peer can clear this flag, which
	 * belongs to the file, fill the counter, and so stop this thread, as
	 * any process of this user can stop this process by SIGSTOP.  The
	 * kernel refuses RWF_NOWAIT for a write to an eventfd.
	 */
	if (fd_identity_holds(e->peer_wake_fd) &&
	    syscall(SYS_write, e->peer_wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the peer wakes */
}
