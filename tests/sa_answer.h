/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers of a subnet administration, for tests that act as one.  The functions
 * sa_answer* turn the MAD of a question into the answer.  The offsets stand
 * here a second time, so that a wrong offset in hdr/sa.c makes the tests fail.
 */
#ifndef TESTS_SA_ANSWER_H
#define TESTS_SA_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "hdr/bytes.h"

enum {
	/* offsets in the MAD, in bytes */
	SA_AT_METHOD = 3,
	SA_AT_STATUS = 4,
	SA_AT_ATTRIBUTE = 16,
	SA_AT_MASK = 48,
	SA_AT_RECORD = 56,
	/* the statuses of an answer (IBTA Vol 1, 15.4.5) */
	SA_REQUEST_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_GID_INVALID = 0x0500,
	SA_COMPONENTS = 0x0600, /* the request to make a group lacks fields */
	SA_EXACTLY = 2 << 6,	/* the selector of an MTU, a rate or a time */
};

/* Does the question ask for a path? */
static inline bool sa_asks_path(const uint8_t *mad)
{
	return bytes_get16(mad + SA_AT_ATTRIBUTE) == 0x35;
}

/* Does the question ask to leave a group? */
static inline bool sa_asks_leave(const uint8_t *mad)
{
	return mad[SA_AT_METHOD] == 0x15;
}

/* Fills in the MLID, the Q_Key and the MTU of a group that a port joins.  mtu:
 * the code of the MTU, without a selector. */
static inline void sa_answer_group(uint8_t *mad, uint16_t mlid, uint32_t qkey,
				   uint8_t mtu)
{
	bytes_put32(mad + SA_AT_RECORD + 32, qkey);
	bytes_put16(mad + SA_AT_RECORD + 36, mlid);
	mad[SA_AT_RECORD + 38] = mtu;
}

/* Fills in the LIDs and the MTU of a path.  mtu: the code of the MTU. */
static inline void sa_answer_path(uint8_t *mad, uint16_t dlid, uint16_t slid,
				  uint8_t mtu)
{
	bytes_put16(mad + SA_AT_RECORD + 40, dlid);
	bytes_put16(mad + SA_AT_RECORD + 42, slid);
	mad[SA_AT_RECORD + 54] = SA_EXACTLY | mtu;
}

/* Turns the question into the answer: sets the method of a response and the
 * status. */
static inline void sa_answer(uint8_t *mad, uint16_t status)
{
	mad[SA_AT_METHOD] = sa_asks_leave(mad) ? 0x95 : 0x81;
	bytes_put16(mad + SA_AT_STATUS, status);
}

#endif
