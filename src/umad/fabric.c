/* SPDX-License-Identifier: BSD-2-Clause */
#include "umad/fabric.h"

#include "umad/explain.h"

#include <stdio.h>
#include <unistd.h>

#define PATIENCE_MS 60000

bool u_fabric_is_used(void)
{
	return *fabric_client_path() != '\0';
}

int u_fabric_query(struct fabric_proto *m, int *fd)
{
	const char *path = fabric_client_path(), *host = fabric_client_host();
	int connection = fabric_client_connect(path, PATIENCE_MS), err;
	char text[512];

	if (fd)
		*fd = -1;
	snprintf(m->host, sizeof(m->host), "%s", host);
	err = connection < 0 ? connection
			     : fabric_client_ask(connection, m, fd);
	if (!err)
		return connection;
	fabric_client_explain(path, host, err, text, sizeof(text));
	u_say_of((uintptr_t)-err, "umad: %s", text);
	if (connection >= 0)
		close(connection);
	return err;
}
