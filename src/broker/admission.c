/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/admission.h"

#include "broker/user.h"

#include <errno.h>
#include <stdio.h>

int admission_check(const struct server *s, uint64_t files, uid_t user,
		    char *why, size_t size)
{
	uint64_t most = files / ADMISSION_FILES, left;
	uint32_t has = 0;

	for (uint32_t i = 0; i < s->conns; i++)
		has += s->conn[i].user == user;
	if (most > CONN_MAX || user_is_same(user, s->group.user))
		most = CONN_MAX;
	left = most > s->conns ? most - s->conns : 0;
	if (user_is_same(user, s->group.user) ? left > 0 : has < left)
		return 0;
	if (has && left)
		snprintf(why, size,
			 "this user has %u connections to the broker adverbd, "
			 "its share: end some programs",
			 has);
	else
		snprintf(why, size,
			 "the broker adverbd has as many clients as it can "
			 "serve: end some programs");
	return -EUSERS;
}
