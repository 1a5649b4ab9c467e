/* SPDX-License-Identifier: BSD-2-Clause */
/* host/region: a region whose file was opened in vain, because the table of
 * shared memory became full meanwhile.  The test has functions of its own in
 * the place of those that region.c calls. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "hca/share.h"
#include "host/host.h"
#include "host/local_peer.h"
#include "memory/mr_file.h"
#include "util/fd_identity.h"

/* the descriptor of the region's file; -1: not opened yet */
static int opened = -1;

bool __wrap_local_peer_maps(void);
void __wrap_host_lock(struct host *h);
void __wrap_host_unlock(struct host *h);
struct hca *__wrap_host_hca(struct host *h);
bool __wrap_mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
			 struct share *what);
bool __wrap_mr_file_open(const struct mr_file_mapping *m, struct share *what);
enum share_room __wrap_share_room(const struct hca *h, uint64_t va,
				  uint64_t bytes);
void __wrap_share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
			     uint64_t bytes);
void __wrap_share_look_end(struct share_look *l);
uint32_t __wrap_share_again(struct hca *h, uint64_t va, uint64_t bytes,
			    const struct share *what);
uint32_t __wrap_share_enter(struct hca *h, uint64_t va, uint64_t bytes,
			    const struct share *what);

bool __wrap_local_peer_maps(void)
{
	return true;
}

void __wrap_host_lock(struct host *h)
{
}

void __wrap_host_unlock(struct host *h)
{
}

struct hca *__wrap_host_hca(struct host *h)
{
	return NULL;
}

bool __wrap_mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
			 struct share *what)
{
	what->va = va;
	what->bytes = bytes;
	return true;
}

bool __wrap_mr_file_open(const struct mr_file_mapping *m, struct share *what)
{
	what->fd = opened = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	return opened >= 0;
}

enum share_room __wrap_share_room(const struct hca *h, uint64_t va,
				  uint64_t bytes)
{
	return SHARE_FREE;
}

void __wrap_share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
			     uint64_t bytes)
{
}

void __wrap_share_look_end(struct share_look *l)
{
}

uint32_t __wrap_share_again(struct hca *h, uint64_t va, uint64_t bytes,
			    const struct share *what)
{
	return 0;
}

/* Acts as if no row is free, and as another thread of the program, which closes
 * adverb's descriptor and opens a file of its own that gets the same number. */
uint32_t __wrap_share_enter(struct hca *h, uint64_t va, uint64_t bytes,
			    const struct share *what)
{
	int own = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(dup3(own, what->fd, O_CLOEXEC), what->fd);
	close(own);
	return 0;
}

static void a_file_of_the_program_is_not_closed(void **state)
{
	static uint8_t memory[8192];

	assert_int_equal(host_share(NULL, memory, sizeof(memory)), 0);
	assert_true(opened >= 0);
	assert_true(fcntl(opened, F_GETFD) >= 0);
	/* the number is not noted any more */
	assert_true(fd_identity_holds(opened));
	close(opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_the_program_is_not_closed),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
