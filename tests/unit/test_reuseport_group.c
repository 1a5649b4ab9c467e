/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/reuseport_group: a successor adopts a store only if the store has the
 * files of a group, and a member joins as a whole or not at all.
 * test_reuseport_port.c tests which process has the port. */
#include "one_group.h"

#include "broker/shared_page.h"
#include "engine/credit.h"

/* the group of the successor of the broker that has `group` */
static struct reuseport_group next;

/* Makes a store in which a process has put these members 0 and 1. */
static void store_both(struct fd_store *s, const int first[FD_STORE_MEMBER_FDS],
		       const int second[FD_STORE_MEMBER_FDS])
{
	assert_int_equal(fd_store_new(s), 0);
	s->ledger->key = group.key;
	assert_int_equal(fd_store_put(s, 0, first), 0);
	assert_int_equal(fd_store_put(s, 1, second), 0);
}

/* Lets a successor that may have `files` descriptors adopt a store with two
 * members, and checks that the successor has both or none.  Returns 0 or -errno
 * of reuseport_group_adopt. */
static int adopt_store(const struct fd_store *s, rlim_t files)
{
	int own = socket(AF_UNIX, SOCK_SEQPACKET, 0), store = dup(s->fd), err;
	struct rlimit was, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = files;
	reuseport_group_init(&next, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = reuseport_group_adopt(&next, store, own, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(next.count, err ? 0 : 2);
	reuseport_group_close(&next);
	close(own);
	return err;
}

/* Lets a successor adopt a store with these members 0 and 1.  Returns 0 or
 * -errno. */
static int adopt_both(const int first[FD_STORE_MEMBER_FDS],
		      const int second[FD_STORE_MEMBER_FDS])
{
	struct fd_store s;
	int err;

	store_both(&s, first, second);
	err = adopt_store(&s, 256);
	fd_store_close(&s);
	return err;
}

/* Lets a successor adopt a store with member 0 of `group`, and these
 * descriptors as member 1.  Returns 0 or -errno. */
static int adopt_with(const int second[FD_STORE_MEMBER_FDS])
{
	return adopt_both((int[]){group.member[0].fd, -1, -1}, second);
}

/* For -EMFILE, broker/greeting tells the client which limit was reached.  For
 * -EADDRINUSE, the client would look for the broker of another version that
 * holds the port. */
static void a_limit_on_files_is_no_port_in_use(void **state)
{
	struct rlimit was, none;
	const char *why = "";
	uint32_t class;
	int err;

	reuseport_group_init(&next, true);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = reuseport_group_take(&next, geteuid(), getpid(), 1, &why, &class);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(err, -EMFILE);
	reuseport_group_close(&next);
}

/* A store comes from a client, which may have put any files there. */
static void a_store_with_other_files_is_refused(void **state)
{
	int fd, page, pipes[2], loose, lone, pair[2];

	begin_group();
	fd = group.member[1].fd;
	page = group.member[1].page_fd;
	loose = memfd_create("page", MFD_ALLOW_SEALING);
	lone = socket(AF_INET6, SOCK_DGRAM, 0);
	assert_int_equal(ftruncate(loose, SHARED_PAGE_BYTES), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(adopt_with((int[]){fd, page, -1}), 0);
	assert_int_equal(adopt_with((int[]){fd, -1, -1}), 0);
	assert_int_equal(adopt_with((int[]){pair[1], page, pair[0]}), 0);
	assert_int_equal(adopt_with((int[]){lone, page, -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){pipes[0], page, -1}), -EPROTO);
	/* a broker that opened the pipe by its number in /proc would wait until
	 * somebody writes there */
	assert_int_equal(adopt_with((int[]){fd, pipes[0], -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){fd, loose, -1}), -EPROTO);
	assert_int_equal(adopt_with((int[]){pair[1], page, lone}), -EPROTO);
	/* the broker receives by a socket of the port, not by a relay */
	assert_int_equal(
		adopt_both((int[]){pair[1], -1, -1}, (int[]){fd, page, -1}),
		-EPROTO);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(pair[i]);
	}
	close(loose);
	close(lone);
	reuseport_group_close(&group);
}

/* A successor may be unable to receive one of the members.  If the successor
 * adopted only the members before this one, the successor would later give the
 * index of this member to a new member. */
static void a_group_is_adopted_as_a_whole_or_not_at_all(void **state)
{
	bool lacked_one = false;
	struct fd_store s;
	rlim_t files;
	int err;

	begin_group();
	store_both(&s, (int[]){group.member[0].fd, -1, -1},
		   (int[]){group.member[1].fd, group.member[1].page_fd, -1});
	for (files = 8; (err = adopt_store(&s, files)); files++)
		lacked_one |= err == -EMFILE;
	assert_true(lacked_one);
	fd_store_close(&s);
	reuseport_group_close(&group);
}

/* A successor may find a malformed member after the first relayed one.  It then
 * begins a group of its own, whose member 0 must be a socket of the port. */
static void a_group_begins_anew_after_a_failed_adoption(void **state)
{
	int own = socket(AF_UNIX, SOCK_SEQPACKET, 0), pipes[2];
	const char *why = "";
	uint32_t class;

	assert_int_equal(pipe(pipes), 0);
	reuseport_group_init(&group, false);
	assert_int_equal(reuseport_group_take(&group, geteuid(), getpid(), 1,
					      &why, &class),
			 0);
	assert_int_equal(fd_store_put(&group.fd_store, group.count,
				      (int[]){pipes[0], -1, -1}),
			 0);
	reuseport_group_init(&next, true);
	assert_int_equal(
		reuseport_group_adopt(&next, dup(group.fd_store.fd), own, 1),
		-EPROTO);
	reuseport_group_close(&group);
	if (reuseport_group_take(&next, geteuid(), getpid(), 1, &why, &class))
		fail_msg("%s", why);
	reuseport_group_close(&next);
	close(own);
	close(pipes[0]);
	close(pipes[1]);
}

/* Returns whether the page has this generation, each byte of the shm acks is
 * `acks`, and the rest of the part that the owner writes is zero. */
static bool is_cleared(int fd, uint64_t generation, uint8_t acks)
{
	const size_t from = offsetof(struct credit_page, posts),
		     to = from + sizeof(((struct credit_page *)0)->posts);
	uint8_t all[SHARED_PAGE_OWNER_BYTES];
	bool is_right = shared_page_copy(fd, 0, sizeof(all), all);

	for (size_t i = 0; i < sizeof(all); i++)
		is_right &= all[i] == (i >= from && i < to ? acks : 0);
	return is_right && shared_page_generation(fd) == generation;
}

/* The limit on the size of files holds for pages, too: pwrite fails, or writes
 * less.  A broker whose limit is below the size of a page makes no pages, but
 * may adopt those of an earlier broker. */
static void a_page_is_cleared_whatever_the_size_of_files(void **state)
{
	static const rlim_t sizes[] = {0, 4096, 8188, SHARED_PAGE_BYTES};
	int fd = shared_page_new();
	uint64_t generation = 1;
	struct rlimit was, few;
	uint8_t *page = shared_page_map(fd, PROT_READ | PROT_WRITE);

	assert_non_null(page);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
		memset(page, 0xa5, SHARED_PAGE_BYTES);
		few = (struct rlimit){sizes[i], was.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
		assert_true(shared_page_end(fd, ++generation));
		assert_true(is_cleared(fd, generation, 0xa5));
		assert_true(shared_page_clear(fd, ++generation));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_true(is_cleared(fd, generation, 0));
	}
	shared_page_unmap(page);
	close(fd);
}

/* The peers of a process that has ended read its shm acks until another process
 * has its class. */
static void a_released_class_keeps_its_shm_acks(void **state)
{
	struct credit_page *page;
	const char *why = "";
	uint32_t class, next_class;

	begin_group();
	if (reuseport_group_take(&group, geteuid(), getpid(), 1, &why, &class))
		fail_msg("%s", why);
	page = shared_page_map(reuseport_group_at(&group, class)->page_fd,
			       PROT_READ | PROT_WRITE);
	assert_non_null(page);
	memset(page, 0xa5, SHARED_PAGE_OWNER_BYTES);
	reuseport_group_release(&group, class, 1);
	assert_true(page->posts[0].accepted == 0xa5a5a5a5a5a5a5a5u);
	assert_int_equal(page->capacity, 0);
	if (reuseport_group_take(&group, geteuid(), getpid(),
				 1 + REUSEPORT_REST_MS, &why, &next_class))
		fail_msg("%s", why);
	assert_int_equal(next_class, class);
	assert_true(page->posts[0].accepted == 0);
	shared_page_unmap(page);
	reuseport_group_close(&group);
}

static uint32_t take_class(uint64_t now_ms)
{
	const char *why = "";
	uint32_t class = 0;

	if (reuseport_group_take(&group, geteuid(), getpid(), now_ms, &why,
				 &class))
		fail_msg("%s", why);
	return class;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static bool lacks_memory;

/* Replaces libc's memfd_create.  With lacks_memory, fails as if no memory were
 * left. */
int memfd_create(const char *name, unsigned flags)
{
	if (lacks_memory) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* If a relayed member lacked a page, the store would have only the receiving
 * end of the member's relay, and a successor would send the process nothing. */
static void no_relayed_member_lacks_a_page(void **state)
{
	int own = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	const char *why = "";
	uint32_t class;

	reuseport_group_init(&group, false);
	take_class(1);
	lacks_memory = true;
	assert_int_equal(reuseport_group_take(&group, geteuid(), getpid(), 1,
					      &why, &class),
			 -ENOMEM);
	lacks_memory = false;
	take_class(1);
	reuseport_group_init(&next, false);
	assert_int_equal(
		reuseport_group_adopt(&next, dup(group.fd_store.fd), own, 1),
		0);
	assert_int_equal(next.count, 3);
	for (uint32_t i = 1; i < next.count; i++)
		assert_true(next.member[i].relay_fd >= 0);
	reuseport_group_close(&next);
	reuseport_group_close(&group);
	close(own);
}

/* The errno with which sendmsg fails; 0: the kernel sends the message. */
static int unsent;

/* Replaces libc's sendmsg, by which the fd store is filled. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (!unsent)
		return syscall(SYS_sendmsg, fd, m, flags);
	errno = unsent;
	return -1;
}

/* The errno with which the kernel refuses to steer; 0: the kernel steers. */
static int unsteered;

/* Replaces libc's setsockopt. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	if (!unsteered || name != SO_ATTACH_REUSEPORT_CBPF)
		return (int)syscall(SYS_setsockopt, fd, level, name, value,
				    size);
	errno = unsteered;
	return -1;
}

/* Asks the group for a class, which the group must refuse with err. */
static const char *refuse_class(int err)
{
	const char *why = "";
	uint32_t class;

	assert_int_equal(reuseport_group_take(&group, geteuid(), getpid(), 1,
					      &why, &class),
			 err);
	assert_uint_in_range(strlen(why), 1, 95); /* proto.why */
	return why;
}

/* Sends a datagram for a QPN of the class that has `index`.  Returns the index
 * of the member that receives the datagram. */
static uint32_t receiver_of(uint32_t index)
{
	uint32_t qpn = htonl(steer_qpn(steer_class_at(&group.key, index), 1));
	uint8_t bth[12] = {0};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(4791),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd p[STEER_CLASS_MAX + 1];
	uint32_t at = 0;

	memcpy(bth + 4, &qpn, sizeof(qpn));
	assert_int_equal(sendto(fd, bth, sizeof(bth), 0, (struct sockaddr *)&to,
				sizeof(to)),
			 sizeof(bth));
	close(fd);
	for (uint32_t i = 0; i < group.count; i++)
		p[i] = (struct pollfd){group.member[i].fd, POLLIN, 0};
	assert_int_equal(poll(p, group.count, 1000), 1);
	while (!p[at].revents)
		at++;
	assert_int_equal(recv(p[at].fd, bth, sizeof(bth), 0), sizeof(bth));
	return at;
}

/* If a member joined that the fd store lacks, a successor would take the next
 * member in the store for that member. */
static void a_member_that_cannot_be_stored_does_not_join(void **state)
{
	int own = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ino_t last;

	begin_group();
	unsent = ETOOMANYREFS;
	refuse_class(-ETOOMANYREFS);
	unsent = ENOBUFS;
	assert_non_null(strstr(refuse_class(-ENOBUFS), "memory"));
	unsent = 0;
	assert_int_equal(group.count, 2);
	if (!group.is_relayed) {
		assert_int_equal(receiver_of(1), 1);
		assert_int_equal(receiver_of(2), 0); /* nobody's class */
	}
	take_class(1);
	assert_int_equal(group.count, 3);
	last = inode_of(group.member[2].fd);
	reuseport_group_init(&next, true);
	assert_int_equal(
		reuseport_group_adopt(&next, dup(group.fd_store.fd), own, 1),
		0);
	assert_int_equal(next.count, 3);
	assert_int_equal(inode_of(next.member[2].fd), last);
	reuseport_group_close(&next);
	reuseport_group_close(&group);
	close(own);
}

/* The kernel has steered for the first member, so the message must not say that
 * this kernel cannot steer. */
static void a_lack_of_memory_to_steer_is_named(void **state)
{
	begin_group();
	if (!group.is_relayed) {
		unsteered = ENOMEM;
		assert_non_null(strstr(refuse_class(-ENOMEM), "lacks memory"));
		unsteered = EPERM;
		assert_non_null(strstr(refuse_class(-EPERM), strerror(EPERM)));
		unsteered = 0;
		assert_int_equal(group.count, 2);
	}
	reuseport_group_close(&group);
}

/* Puts a page that nobody can write in the place of the page of member i. */
static void seal_page(uint32_t i)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, SHARED_PAGE_BYTES), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), 0);
	close(group.member[i].page_fd);
	group.member[i].page_fd = fd;
}

/* A successor adopts pages that others have made, so a page may be sealed. */
static void a_page_that_cannot_be_cleared_takes_only_its_class(void **state)
{
	uint32_t class[4], sealed;
	uint64_t now = 1000;

	begin_group();
	sealed = steer_class_at(&group.key, 1);
	seal_page(1);
	for (int i = 0; i < 3; i++)
		class[i] = take_class(now);
	reuseport_group_release(&group, sealed, ++now);
	for (int i = 0; i < 3; i++)
		reuseport_group_release(&group, class[i], now);
	now += REUSEPORT_REST_MS;
	for (int i = 0; i < 4; i++) {
		class[i] = take_class(now);
		assert_int_not_equal(class[i], sealed);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(class[i], class[k]);
	}
	reuseport_group_close(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_on_files_is_no_port_in_use),
		cmocka_unit_test(a_store_with_other_files_is_refused),
		cmocka_unit_test(a_group_is_adopted_as_a_whole_or_not_at_all),
		cmocka_unit_test(a_group_begins_anew_after_a_failed_adoption),
		cmocka_unit_test(a_page_is_cleared_whatever_the_size_of_files),
		cmocka_unit_test_teardown(a_released_class_keeps_its_shm_acks,
					  end_group),
		cmocka_unit_test_teardown(no_relayed_member_lacks_a_page,
					  end_group),
		cmocka_unit_test_teardown(
			a_member_that_cannot_be_stored_does_not_join,
			end_group),
		cmocka_unit_test_teardown(a_lack_of_memory_to_steer_is_named,
					  end_group),
		cmocka_unit_test_teardown(
			a_page_that_cannot_be_cleared_takes_only_its_class,
			end_group),
	};

	return cmocka_run_group_tests(tests, setup_group, NULL);
}
