/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/table: cookies of objects, and a fork while another thread makes the
 * table larger. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs/table.h"

#define FIRST 63 /* as many cookies as the table first has slots for */

static int object;
static int visits;

static void count_visit(void *visited, int type)
{
	assert_ptr_equal(visited, &object);
	visits += type;
}

static void a_cookie_finds_its_object_until_it_is_removed(void **state)
{
	uint64_t cookie = v_table_add(&object), other;

	assert_true(cookie != 0);
	visits = 0;
	v_table_visit(cookie, count_visit, 3);
	assert_int_equal(visits, 3);
	v_table_remove(cookie);
	v_table_visit(cookie, count_visit, 3);
	assert_int_equal(visits, 3);
	/* the same slot has another cookie now */
	other = v_table_add(&object);
	assert_int_equal(v_table_handle(other), v_table_handle(cookie));
	assert_true(other != cookie);
	v_table_visit(cookie, count_visit, 3);
	assert_int_equal(visits, 3);
	v_table_remove(other);
}

/* ---- a fork while the table grows ---- */

/* the next call of realloc is that of grow_table: __wrap_realloc delays it */
static bool is_watched;
/* posted when the old slots are destroyed, and when the fork has begun */
static sem_t has_moved, has_begun;

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

/* Moves the FIRST + 1 slots, destroys the old ones, and waits until the fork
 * has begun. */
void *__wrap_realloc(void *p, size_t size)
{
	const struct timespec moment = {.tv_nsec = 100000000};
	void *moved;

	if (!is_watched)
		return __real_realloc(p, size);
	is_watched = false;
	moved = malloc(size);
	assert_non_null(moved);
	memcpy(moved, p, size / 2);
	memset(p, 0, size / 2);
	sem_post(&has_moved);
	sem_wait(&has_begun);
	/* If fork does not wait for the lock of the table, fork makes the child
	 * in this time.  If fork waits, no length of this time makes the test
	 * fail. */
	nanosleep(&moment, NULL);
	free(p);
	return moved;
}

/* A prepare handler of pthread_atfork.  The test registers this handler after
 * the table has registered its own, so this handler runs first. */
static void tell_begin(void)
{
	sem_post(&has_begun);
}

static void *grow_table(void *arg)
{
	return v_table_add(&object) ? arg : NULL;
}

static void a_child_has_whole_slots(void **state)
{
	uint64_t cookies[FIRST];
	pthread_t thread;
	int status = -1;
	void *grown;
	pid_t child;

	for (int i = 0; i < FIRST; i++)
		cookies[i] = v_table_add(&object);
	sem_init(&has_moved, 0, 0);
	sem_init(&has_begun, 0, 0);
	pthread_atfork(tell_begin, NULL, NULL);
	is_watched = true;
	assert_int_equal(pthread_create(&thread, NULL, grow_table, &object), 0);
	sem_wait(&has_moved);
	visits = 0;
	child = fork();
	if (!child) {
		for (int i = 0; i < FIRST; i++)
			v_table_visit(cookies[i], count_visit, 1);
		_exit(visits == FIRST ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(pthread_join(thread, &grown), 0);
	assert_ptr_equal(grown, &object);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cookie_finds_its_object_until_it_is_removed),
		cmocka_unit_test(a_child_has_whole_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
