/* SPDX-License-Identifier: BSD-2-Clause */
#include "leak_check.h"

#include "check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool is_thread(const char *name)
{
	return *name != '.';
}

/* Is fd a UDP socket?  adverb keeps a socket for each peer to which adverb
 * sends.  adverb closes such a socket only when adverb needs a socket for
 * another peer and the old socket was not used for ten seconds, so these
 * sockets are no leak. */
static bool is_datagrams(int fd)
{
	int type = 0, domain = 0;
	socklen_t size = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) &&
	       !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) &&
	       type == SOCK_DGRAM && domain != AF_UNIX;
}

static bool is_kept(const char *name)
{
	return *name != '.' && !is_datagrams(atoi(name));
}

static int count_entries(const char *path, bool (*counts)(const char *))
{
	DIR *dir = opendir(path);
	struct dirent *one;
	int n = 0;

	check_need(dir, path);
	while ((one = readdir(dir)))
		n += counts(one->d_name);
	closedir(dir);
	return n;
}

void leak_check_get(struct leak_check *h)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	check_need(f, "/proc/self/maps");
	*h = (struct leak_check){
		.threads = count_entries("/proc/self/task", is_thread),
		.files = count_entries("/proc/self/fd", is_kept),
	};
	while (fgets(line, sizeof(line), f))
		h->arenas += strstr(line, "adverb-arena") != NULL;
	fclose(f);
}

bool leak_check_more(const struct leak_check *now,
		     const struct leak_check *before)
{
	return now->threads > before->threads || now->arenas > before->arenas ||
	       now->files > before->files;
}
