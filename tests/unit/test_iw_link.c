/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/iw_link: the thread adverb-iw in a program that closes descriptors. */
#include "test.h"

#include "rdmacm/iw_inside.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns how many descriptors the process has; *kind becomes the last that is
 * an anonymous file of this kind. */
static int count_fds(const char *kind, int *fd)
{
	char path[300], target[64];
	DIR *all = opendir("/proc/self/fd");
	struct dirent *one;
	ssize_t n;
	int count = 0;

	assert_non_null(all);
	while ((one = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", one->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue; /* the entries . and .. */
		target[n] = '\0';
		count++;
		if (strstr(target, kind))
			*fd = atoi(one->d_name);
	}
	closedir(all);
	return count;
}

static int fd_of(const char *kind)
{
	int fd = -1;

	count_fds(kind, &fd);
	assert_true(fd >= 0);
	return fd;
}

#define EPOLL "[eventpoll]"
#define WAKE  "[eventfd]"

static struct r_iw *new_object(void)
{
	struct r_iw *iw;

	r_take();
	iw = r_iw_new(NULL);
	r_give();
	assert_non_null(iw);
	return iw;
}

/* The thread opens the descriptors anew that the program has closed, and no
 * others. */
static void a_descriptor_that_the_program_closes_is_replaced(void **state)
{
	static const char *const closed[][2] = {{EPOLL}, {WAKE}, {EPOLL, WAKE}};
	struct r_iw *iw[1 + TEST_COUNT(closed)] = {new_object()};
	int none, before = count_fds("", &none);

	for (size_t i = 0; i < TEST_COUNT(closed); i++) {
		for (int k = 0; k < 2 && closed[i][k]; k++)
			close(fd_of(closed[i][k]));
		iw[i + 1] = new_object();
		assert_int_equal(count_fds("", &none), before);
	}
	r_take();
	for (size_t i = 0; i < TEST_COUNT(iw); i++)
		r_iw_free(iw[i]);
	r_give();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_descriptor_that_the_program_closes_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
