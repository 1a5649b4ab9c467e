/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/procfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICKS_FIELD 20 /* counted from the state */

bool procfs_look(pid_t id, struct procfs_stat *p)
{
	char path[40], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')'); /* a name may have any characters */
	if (!at || at[1] != ' ')
		return false;
	p->state = at[2];
	for (int i = 0; at && i < TICKS_FIELD; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	p->start = strtoull(at + 1, NULL, 10);
	return true;
}

bool procfs_acts_as(pid_t id, uid_t user)
{
	char path[40], line[256];
	unsigned real, effective, saved, files;
	bool found = false, acts = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Uid: %u %u %u %u", &real, &effective,
			       &saved, &files) == 4;
	if (found)
		acts = files == user;
	if (f)
		fclose(f);
	return acts;
}
