/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of programs to the subnet administration: for paths
 * (CMPROTO_ROUTE), and to join multicast groups and to leave them (CMPROTO_JOIN
 * and CMPROTO_LEAVE).  Part of fabric_cm.
 */
#ifndef TOOLS_FABRIC_QUERY_H
#define TOOLS_FABRIC_QUERY_H

#include "fabric_host.h"

#include "fabric/umad_header.h"

/* Initialises the host's lists of questions and groups. */
void fabric_query_init(struct cm_host *h);
/* Frees the groups that are left. */
void fabric_query_free(struct cm_host *h);
/* Handles the CMPROTO_ROUTE of a program, which is answered now or later. */
void fabric_query_route(struct fabric_cm_client *c, const struct cmproto *m);
/* Handles the CMPROTO_JOIN of a program, which is answered now or later. */
void fabric_query_join(struct fabric_cm_client *c, const struct cmproto *m);
/* Handles the CMPROTO_LEAVE of a program, which has no answer. */
void fabric_query_leave(struct fabric_cm_client *c, const struct cmproto *m);
/* A port of the host has changed; `changes` is a set of enum data_change.  The
 * port's memberships end, as in the kernel, if the port is no longer active,
 * gets another LID or LMC, or leaves the group's partition, or if the subnet
 * manager asks programs to join their groups again.  A membership also ends if
 * no port of the host has the GID any more with which the membership began. */
void fabric_query_changed(struct cm_host *h, uint32_t port, uint32_t changes);
/* The program ends: drops its questions, and ends its memberships. */
void fabric_query_drop(struct fabric_cm_client *c);
/* Takes the answer to a question.  If no answer has come, takes the question
 * itself, with a status other than 0, such as ETIMEDOUT. */
void fabric_query_take(struct cm_host *h, const struct umad *from,
		       const uint8_t *mad, size_t bytes);
/* Is a question about a join or a leave open? */
bool fabric_query_is_busy(const struct cm_host *h);

#endif
