/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer_death [-n ROUNDS] [-l LEAST] [-t SECONDS] [-s SEED] [-o ONLY]: the peers
 * of one process die, one after the other, during traffic of all kinds
 * (traffic.h).
 *
 *	friend <==2==> survivor <==3==> victim: is killed, exits, or executes
 *	                                        another program
 *
 * Each round has a new victim.  The survivor's requests to the victim must end
 * with the right status, messages and atomics of the victim must be whole, no
 * byte outside the registered memory may change, and the friend must be served
 * all the time.  After each round the survivor destroys its queue pairs with
 * the victim.  At the end the survivor's SRQ must have all its receives, and
 * the survivor must have no thread, descriptor or arena of a dead victim.
 *
 *	-n	how many rounds; 100 without -n
 *	-t, -l	ends after SECONDS, but not before LEAST rounds; 20 without -l
 *	-s	with equal seeds the victims of two runs die in the same ways
 *	-o	all victims die in the way ONLY: kill, exit or exec
 *
 * Exits with 0, with 2 if an option is wrong, or prints what is wrong and exits
 * with 1.
 */
#include "step_timeout.h"
#include "leak_check.h"
#include "traffic.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	LINKS = 3,	  /* queue pairs with a victim */
	FRIENDS = 2,	  /* queue pairs with the friend */
	LATEST_US = 4000, /* the longest wait before a victim is killed */
	REST_US = 50,	  /* the pause after a turn without a completion */
	TURNS = 400, /* a victim that exits or executes makes fewer turns */
	WARM = 10, /* rounds after which the number of objects must not grow */
	LEFT_MS = 200000, /* wait for the last victim's objects to be freed */
	WAIT_S = 300,	  /* the time limit of a step of the survivor */
};

enum death { KILL, EXIT, EXEC };
enum { SURVIVOR, OTHER };

struct meeting {
	struct endpoint_address at[2][LINKS];
	/* is_there: the number, plus 1, of the last round for which the side's
	 * addresses are in at[].  is_ready: the number, plus 1, of the last
	 * round for which the side is connected. */
	int is_there[2], is_ready[2];
};

/* Shared by all processes. */
static struct shared_steps {
	struct meeting friend, victim;
	int round;     /* the current round */
	int rounds;    /* the number of rounds; -1: not known yet */
	int is_doomed; /* the victim may die from now on */
	int is_dead;   /* the victim has ended, or executed the program */
	int is_done;   /* the last round that the survivor ended, plus 1 */
	/* the steps, 1 to 5, in which the survivor and the friend end their
	 * traffic; 0: it goes on */
	int is_last;
	/* How many requests of the friend have ended.  The loads and stores of
	 * this count are atomic, but nothing depends on their order with
	 * accesses to other memory. */
	uint32_t friends;
	/* The victim's atomic adds that were posted, and that completed. */
	uint32_t added_posted[LINKS], added_done[LINKS];
} * shared_steps;

static unsigned seed = 1;
static int only = -1;

/* If @good is false, prints the round, the seed and @what, and ends the process
 * by _exit with status 1. */
static void need_good(bool good, const char *what)
{
	if (good)
		return;
	printf("round %d, seed %u: %s\n", shared_steps->round, seed, what);
	fflush(stdout);
	_exit(1);
}

static uint32_t random_of(int round, uint32_t what)
{
	uint32_t x = (uint32_t)round * 2654435761u + seed * 40503u + what;

	x ^= x >> 16;
	x *= 2246822519u;
	return x ^ x >> 13;
}

static enum death death_of(int round)
{
	uint32_t x = random_of(round, 1) % 8;

	if (only >= 0)
		return (enum death)only;
	return x == 0 ? EXIT : x == 1 ? EXEC : KILL;
}

/* Returns whether process `who` posts on a link in this round: the victim, the
 * survivor or both post. */
static bool is_initiator(int who, int round, int link)
{
	uint32_t x = random_of(round, 2 + (uint32_t)link) % 4;

	return x > 1 || (int)x == who;
}

/* Makes a turn, and rests if the turn had no completion, so that other
 * processes can run. */
static void turn_or_rest(struct traffic_line *line)
{
	if (!traffic_turn(line))
		usleep(REST_US);
}

static void give_addresses(struct meeting *m, int who, struct traffic_link *l,
			   int n)
{
	for (int i = 0; i < n; i++)
		m->at[who][i] = l[i].self;
	step_timeout_say(&m->is_there[who], shared_steps->round + 1);
}

static void join_links(struct meeting *m, int who, struct traffic_link *l,
		       int n)
{
	for (int i = 0; i < n; i++) {
		l[i].peer = m->at[!who][i];
		traffic_connect(&l[i]);
	}
	step_timeout_say(&m->is_ready[who], shared_steps->round + 1);
}

/* ---- the friend ---- */

/* Posts no more, and makes turns until all requests of the links have ended. */
static void quiesce_links(struct traffic_line *line, struct traffic_link *l,
			  int n)
{
	for (int i = 0; i < n; i++)
		l[i].initiates = false;
	for (int i = 0; i < n; i++)
		while (!traffic_is_idle(&l[i]))
			traffic_turn(line);
}

static void be_friend(void)
{
	static struct traffic_line line;
	static struct traffic_link l[FRIENDS];
	struct meeting *m = &shared_steps->friend;

	traffic_open(&line, false);
	for (int i = 0; i < FRIENDS; i++)
		traffic_add(&line, &l[i], 1000 + (uint32_t)i);
	give_addresses(m, OTHER, l, FRIENDS);
	step_timeout_await(&m->is_there[SURVIVOR], 1);
	join_links(m, OTHER, l, FRIENDS);
	step_timeout_await(&m->is_ready[SURVIVOR], 1);
	for (int i = 0; i < FRIENDS; i++)
		l[i].initiates = true;
	while (!step_timeout_look(&shared_steps->is_last)) {
		turn_or_rest(&line);
		__atomic_store_n(&shared_steps->friends,
				 l[0].ended + l[1].ended, __ATOMIC_RELEASE);
	}
	quiesce_links(&line, l, FRIENDS);
	/* Sends as many messages as the survivor's SRQ has receives.  The
	 * survivor posts no more receives, so the messages arrive only if no
	 * receive was lost. */
	step_timeout_say(&shared_steps->is_last, 2);
	while (step_timeout_look(&shared_steps->is_last) != 3)
		traffic_turn(&line);
	traffic_say(&l[1], TRAFFIC_POOL);
	while (!traffic_is_idle(&l[1]))
		traffic_turn(&line);
	step_timeout_say(&shared_steps->is_last, 4);
	while (step_timeout_look(&shared_steps->is_last) != 5)
		traffic_turn(&line);
}

/* ---- a victim ---- */

/* Runs the program that a victim executes: maps other memory at @where, the
 * address of the victim's region, and writes a byte to the descriptor @out.  No
 * peer may write to this memory until the descriptor @in gives a byte.  Returns
 * 0, or 1 if a peer has written or a descriptor fails. */
static int watch_own_memory(const char *where, const char *in, const char *out)
{
	uint8_t *m = (uint8_t *)(uintptr_t)strtoull(where, NULL, 16), byte;
	bool is_free = mmap(m, TRAFFIC_SPAN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			    -1, 0) == m;

	/* Rarely another mapping is at that address: then there is nothing to
	 * watch, and the process only stays until the end of the round. */
	if (is_free)
		memset(m, ENDPOINT_FILL, TRAFFIC_SPAN);
	if (write(atoi(out), "", 1) != 1 || read(atoi(in), &byte, 1) != 1)
		return 1;
	for (size_t i = 0; is_free && i < TRAFFIC_SPAN; i++)
		if (m[i] != ENDPOINT_FILL) {
			printf("a peer has written byte %zu of the executed program's memory\n",
			       i);
			return 1;
		}
	return 0;
}

static void execute_watcher(const struct traffic_link *l, const int *in,
			    const int *out)
{
	char where[32], from[16], to[16];

	snprintf(where, sizeof(where), "%llx",
		 (unsigned long long)(uintptr_t)l->area.bytes);
	snprintf(from, sizeof(from), "%d", in[0]);
	snprintf(to, sizeof(to), "%d", out[1]);
	execl("/proc/self/exe", "peer_death", "watch", where, from, to, NULL);
	step_timeout_die("exec");
}

static void be_victim(const int *in, const int *out)
{
	static struct traffic_line line;
	static struct traffic_link l[LINKS];
	struct meeting *m = &shared_steps->victim;
	uint32_t turns = random_of(shared_steps->round, 9) % TURNS;

	traffic_open(&line, false);
	for (int i = 0; i < LINKS; i++) {
		l[i].added_posted = &shared_steps->added_posted[i];
		l[i].added_done = &shared_steps->added_done[i];
		traffic_add(&line, &l[i],
			    (uint32_t)(shared_steps->round * LINKS + i));
	}
	give_addresses(m, OTHER, l, LINKS);
	step_timeout_await(&m->is_there[SURVIVOR], shared_steps->round + 1);
	join_links(m, OTHER, l, LINKS);
	step_timeout_await(&m->is_ready[SURVIVOR], shared_steps->round + 1);
	for (int i = 0; i < LINKS; i++)
		l[i].initiates = is_initiator(OTHER, shared_steps->round, i);
	while (death_of(shared_steps->round) == KILL || turns--)
		traffic_turn(&line);
	step_timeout_say(&shared_steps->is_doomed, 1);
	if (death_of(shared_steps->round) == EXEC)
		execute_watcher(&l[0], in, out);
	_exit(0);
}

/* ---- the survivor ---- */

struct survivor {
	struct traffic_line line;
	struct traffic_link friend[FRIENDS], link[LINKS];
};

static void meet_friend(struct survivor *s)
{
	struct meeting *m = &shared_steps->friend;

	traffic_open(&s->line, true);
	s->friend[1].is_shared = true;
	for (int i = 0; i < FRIENDS; i++)
		traffic_add(&s->line, &s->friend[i], 1000 + (uint32_t)i);
	give_addresses(m, SURVIVOR, s->friend, FRIENDS);
	step_timeout_await(&m->is_there[OTHER], 1);
	join_links(m, SURVIVOR, s->friend, FRIENDS);
	step_timeout_await(&m->is_ready[OTHER], 1);
	for (int i = 0; i < FRIENDS; i++)
		s->friend[i].initiates = true;
}

/* Makes turns until *word says this round, or the victim is dead.  Returns
 * whether *word says this round. */
static bool turn_until(struct survivor *s, const int *word)
{
	while (step_timeout_look(word) != shared_steps->round + 1 &&
	       !step_timeout_look(&shared_steps->is_dead))
		turn_or_rest(&s->line);
	return step_timeout_look(word) == shared_steps->round + 1;
}

/* Makes the survivor's ends, and connects them to the victim.  Returns false if
 * the victim has died before its addresses were known. */
static bool meet_victim(struct survivor *s)
{
	struct meeting *m = &shared_steps->victim;

	memset(s->link, 0, sizeof(s->link));
	s->link[1].is_shared = true;
	for (int i = 0; i < LINKS; i++) {
		s->link[i].doom = &shared_steps->is_doomed;
		traffic_add(&s->line, &s->link[i],
			    (uint32_t)(shared_steps->round * LINKS + i));
	}
	give_addresses(m, SURVIVOR, s->link, LINKS);
	if (!turn_until(s, &m->is_there[OTHER]))
		return false;
	join_links(m, SURVIVOR, s->link, LINKS);
	if (!turn_until(s, &m->is_ready[OTHER]))
		return true;
	for (int i = 0; i < LINKS; i++)
		s->link[i].initiates =
			is_initiator(SURVIVOR, shared_steps->round, i);
	return true;
}

/* Forks, so that the kernel shares the registered memory with a child (copy on
 * write) while peers write to that memory. */
static void have_a_child(void)
{
	pid_t child = fork();

	if (!child && shared_steps->round % 16)
		_exit(0);
	if (!child)
		execl("/bin/true", "true", NULL);
	need_good(child > 0 && waitpid(child, NULL, 0) == child,
		  "the survivor cannot fork, or cannot wait for its child");
}

/* Expects that all requests to the dead victim end and that the friend is still
 * served, and removes the links with the victim.  @met: these links were
 * connected. */
static void end_dead_links(struct survivor *s, bool met)
{
	uint32_t friends;

	step_timeout_step("the end of requests to the dead victim", WAIT_S);
	for (int i = 0; met && i < LINKS; i++)
		traffic_bereave(&s->link[i]);
	for (int i = 0; i < LINKS; i++)
		while (!traffic_is_idle(&s->link[i]))
			turn_or_rest(&s->line);
	step_timeout_step("the friend's requests", WAIT_S);
	friends = __atomic_load_n(&shared_steps->friends, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&shared_steps->friends, __ATOMIC_ACQUIRE) -
		       friends <
	       4)
		traffic_turn(&s->line);
	step_timeout_step("the end of the queue pairs", WAIT_S);
	for (int i = 0; i < LINKS; i++) {
		uint64_t n = traffic_remove(&s->line, &s->link[i]);

		need_good(n >= shared_steps->added_done[i] &&
				  n <= shared_steps->added_posted[i],
			  "the sum differs from the adds of the dead victim");
	}
}

static void survive_victim(struct survivor *s)
{
	bool met;

	step_timeout_step("connecting to the victim", WAIT_S);
	met = meet_victim(s);
	if (shared_steps->round % 8 == 0)
		have_a_child();
	step_timeout_step("the death of the victim", WAIT_S);
	while (!step_timeout_look(&shared_steps->is_dead))
		traffic_turn(&s->line);
	end_dead_links(s, met);
	step_timeout_say(&shared_steps->is_done, shared_steps->round + 1);
}

/* Ends the traffic with the friend, and checks that no receive of the shared
 * queue was lost. */
static void part_from_friend(struct survivor *s)
{
	uint32_t until;

	step_timeout_step("the friend's last messages", WAIT_S);
	while (step_timeout_look(&shared_steps->is_last) != 2)
		traffic_turn(&s->line);
	for (int i = 0; i < FRIENDS; i++)
		s->friend[i].initiates = false;
	for (int i = 0; i < FRIENDS; i++)
		while (!traffic_is_idle(&s->friend[i]))
			traffic_turn(&s->line);
	while (traffic_turn(&s->line))
		;
	s->line.keeps = true;
	until = s->friend[1].heard + TRAFFIC_POOL;
	step_timeout_say(&shared_steps->is_last, 3);
	while (step_timeout_look(&shared_steps->is_last) != 4 ||
	       s->friend[1].heard != until)
		traffic_turn(&s->line);
	for (int i = 0; i < FRIENDS; i++)
		traffic_remove(&s->line, &s->friend[i]);
	step_timeout_say(&shared_steps->is_last, 5);
}

static void be_survivor(void)
{
	static struct survivor s;
	struct leak_check before = {0}, now;

	step_timeout_watch("this step took too long");
	step_timeout_step("connecting to the friend", WAIT_S);
	meet_friend(&s);
	for (int i = 0; i != step_timeout_look(&shared_steps->rounds); i++) {
		while (step_timeout_look(&shared_steps->round) != i &&
		       i != step_timeout_look(&shared_steps->rounds))
			turn_or_rest(&s.line);
		if (i == step_timeout_look(&shared_steps->rounds))
			break;
		survive_victim(&s);
		if (i <= WARM)
			leak_check_get(&before);
	}
	/* The broker's message about the last death may still be under way. */
	for (int ms = 0; ms < LEFT_MS; ms++) {
		leak_check_get(&now);
		if (!leak_check_more(&now, &before))
			break;
		usleep(1000);
		traffic_turn(&s.line);
	}
	printf("%d peers, %llu completions, threads %d of %d, files %d of %d, "
	       "arenas %d of %d\n",
	       shared_steps->rounds, s.line.done, now.threads, before.threads,
	       now.files, before.files, now.arenas, before.arenas);
	fflush(stdout);
	need_good(!leak_check_more(&now, &before),
		  "a thread, descriptor or arena of dead victims is left");
	step_timeout_say(&shared_steps->is_last, 1);
	part_from_friend(&s);
	traffic_close(&s.line);
}

/* ---- the parent ---- */

static pid_t survivor, companion;

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid == pid;
}

/* Returns whether the survivor or the friend has ended.  Then the round cannot
 * end: the victim waits for the survivor, and the survivor for the friend. */
static bool is_alone(void)
{
	return has_ended(survivor) || has_ended(companion);
}

/* Waits until *word is value, and returns true; returns false if the survivor,
 * the friend or process @who (0: none) ends before. */
static bool await_word(const int *word, int value, pid_t who)
{
	while (step_timeout_look(word) != value) {
		if (is_alone() || (who && has_ended(who)))
			return false;
		usleep(100);
	}
	return true;
}

static int await_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

/* Kills the victim at a random moment; one victim in eight may not be connected
 * yet.  For the others, returns false if the victim, the survivor or the friend
 * ends before the victim is connected. */
static bool kill_victim(pid_t victim)
{
	int round = shared_steps->round;
	uint32_t x = random_of(round, 20);

	if (x % 8 && !await_word(&shared_steps->victim.is_ready[OTHER],
				 round + 1, victim))
		return false;
	usleep(x / 8 % LATEST_US);
	step_timeout_say(&shared_steps->is_doomed, 1);
	return !kill(victim, SIGKILL);
}

/* Waits until the victim has exited, or until the program that the victim
 * executes has written to the pipe @in.  Returns false if that program has
 * failed, or if the survivor or the friend ends before. */
static bool await_departure(pid_t victim, int in)
{
	struct pollfd ready = {.fd = in, .events = POLLIN};
	bool exits = death_of(shared_steps->round) == EXIT;
	char byte;

	while (exits ? !has_ended(victim) : poll(&ready, 1, 0) != 1) {
		if (is_alone())
			return false;
		usleep(100);
	}
	return exits || read(in, &byte, 1) == 1;
}

/* Waits for the end of the victim.  @good: the round has not failed so far.
 * After a failure kills the victim, which may wait for a process that has
 * ended.  Returns whether @good, and the victim has ended as death_of says. */
static bool reap_victim(pid_t victim, bool good)
{
	int status;

	if (!good)
		kill(victim, SIGKILL);
	status = await_child(victim);
	if (death_of(shared_steps->round) == KILL)
		good = good && WIFSIGNALED(status) &&
		       WTERMSIG(status) == SIGKILL;
	else
		good = good && !status;
	return good;
}

static bool run_round(int round)
{
	enum death death = death_of(round);
	int in[2], out[2];
	pid_t victim;
	bool good;

	need_good(!pipe(in) && !pipe(out), "the parent cannot make a pipe");
	memset(shared_steps->added_posted, 0,
	       sizeof(shared_steps->added_posted));
	memset(shared_steps->added_done, 0, sizeof(shared_steps->added_done));
	step_timeout_say(&shared_steps->is_doomed, 0);
	step_timeout_say(&shared_steps->is_dead, 0);
	step_timeout_say(&shared_steps->round, round);
	victim = step_timeout_fork();
	if (!victim) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(in[0]);
		close(out[1]);
		be_victim(out, in);
	}
	close(in[1]);
	close(out[0]);
	good = death == KILL ? kill_victim(victim)
			     : await_departure(victim, in[0]);
	if (death != EXEC)
		good = reap_victim(victim, good);
	step_timeout_say(&shared_steps->is_dead, 1);
	good = good && await_word(&shared_steps->is_done, round + 1, 0);
	if (death == EXEC) {
		good = good && write(out[1], "", 1) == 1;
		good = reap_victim(victim, good);
	}
	close(in[0]);
	close(out[1]);
	return good;
}

static pid_t start_child(void (*what)(void))
{
	pid_t pid = step_timeout_fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	what();
	_exit(0);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Runs @rounds rounds.  If @seconds is not 0, runs no further round once so
 * many seconds are over and @least rounds have run.  Returns whether all rounds
 * succeeded. */
static bool run_rounds(int rounds, int least, double seconds)
{
	double began = now_s();
	int i = 0;

	for (; i < rounds; i++) {
		if (seconds > 0 && i >= least && now_s() - began > seconds)
			break;
		if (!run_round(i)) {
			printf("round %d, seed %u\n", i, seed);
			return false;
		}
	}
	step_timeout_say(&shared_steps->rounds, i);
	return true;
}

/* Ends the survivor and the friend.  @good: all rounds succeeded.  After a
 * failure SIGALRM makes the survivor print for which step the survivor waits.
 * Returns 0 if both processes and all rounds succeeded. */
static int end_processes(bool good)
{
	if (!good && has_ended(survivor))
		kill(companion, SIGKILL);
	else if (!good)
		kill(survivor, SIGALRM);
	good = !await_child(survivor) && good;
	if (!good)
		kill(companion, SIGKILL);
	return await_child(companion) || !good;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"kill", "exit", "exec"};
	int option, rounds = 100, least = 20;
	double seconds = 0;

	if (argc == 5 && !strcmp(argv[1], "watch"))
		return watch_own_memory(argv[2], argv[3], argv[4]);
	while ((option = getopt(argc, argv, "n:l:t:s:o:")) != -1) {
		if (option == 'n')
			rounds = atoi(optarg);
		else if (option == 'l')
			least = atoi(optarg);
		else if (option == 't')
			seconds = atof(optarg);
		else if (option == 's')
			seed = (unsigned)atoi(optarg);
		for (int i = 0; option == 'o' && i < 3; i++)
			if (!strcmp(optarg, names[i]))
				only = i;
		if (option == '?' || (option == 'o' && only < 0)) {
			fprintf(stderr,
				"usage: peer_death [-n ROUNDS] [-l LEAST] "
				"[-t SECONDS] [-s SEED] [-o kill|exit|exec]\n");
			return 2;
		}
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	shared_steps->rounds = -1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	survivor = start_child(be_survivor);
	companion = start_child(be_friend);
	return end_processes(run_rounds(rounds, least, seconds));
}
