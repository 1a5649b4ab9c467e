/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/terminate.h"

#include <stddef.h>

enum { RDMAP, DDP, MPA };      /* layers */
enum { LOCAL, FIRST, SECOND }; /* types 0, 1, 2, defined by each layer */

/* clang-format off */
static const struct terminate_row rows[TERMINATE_CAUSES] = {
	[TERMINATE_LOCAL] = {RDMAP, LOCAL, 0, ENGINE_QP_FATAL,
		"an error on its own side"},
	[TERMINATE_SOURCE_STAG] = {RDMAP, FIRST, 0, ENGINE_QP_ACCESS_ERR,
		"an invalid key of a READ or an atomic (is the memory still "
		"registered?)"},
	[TERMINATE_SOURCE_BOUNDS] = {RDMAP, FIRST, 1, ENGINE_QP_ACCESS_ERR,
		"a range of a READ or an atomic outside its region"},
	[TERMINATE_RIGHT] = {RDMAP, FIRST, 2, ENGINE_QP_ACCESS_ERR,
		"a right that the region lacks (see the access flags of "
		"ibv_reg_mr)"},
	[TERMINATE_SOURCE_STREAM] = {RDMAP, FIRST, 3, ENGINE_QP_ACCESS_ERR,
		"a key of a READ or an atomic that belongs to another "
		"protection domain or queue pair"},
	[TERMINATE_SOURCE_WRAP] = {RDMAP, FIRST, 4, ENGINE_QP_ACCESS_ERR,
		"a range of a READ or an atomic that exceeds 64-bit "
		"addresses"},
	[TERMINATE_INVALIDATE] = {RDMAP, FIRST, 9, ENGINE_QP_ACCESS_ERR,
		"a key that cannot be invalidated by a SEND"},
	[TERMINATE_RDMAP_VERSION] = {RDMAP, SECOND, 5, ENGINE_QP_REQ_ERR,
		"an RDMAP version other than 1"},
	[TERMINATE_OPCODE] = {RDMAP, SECOND, 6, ENGINE_QP_REQ_ERR,
		"an unknown message, or a message that is not allowed at this "
		"point"},
	[TERMINATE_STREAM] = {RDMAP, SECOND, 7, ENGINE_QP_REQ_ERR,
		"a fatal error of this connection"},
	[TERMINATE_GLOBAL] = {RDMAP, SECOND, 8, ENGINE_QP_FATAL,
		"a fatal error of the adapter"},
	[TERMINATE_UNSPECIFIC] = {RDMAP, SECOND, 0xff, ENGINE_QP_REQ_ERR,
		"an error that the peer does not name"},
	[TERMINATE_STAG] = {DDP, FIRST, 0, ENGINE_QP_ACCESS_ERR,
		"an invalid key of a WRITE or a READ response (is the memory "
		"still registered?)"},
	[TERMINATE_BOUNDS] = {DDP, FIRST, 1, ENGINE_QP_ACCESS_ERR,
		"a range of a WRITE or a READ response outside its region"},
	[TERMINATE_STAG_STREAM] = {DDP, FIRST, 2, ENGINE_QP_ACCESS_ERR,
		"a key of a WRITE or a READ response that belongs to another "
		"protection domain or queue pair"},
	[TERMINATE_WRAP] = {DDP, FIRST, 3, ENGINE_QP_ACCESS_ERR,
		"a range of a WRITE or a READ response that exceeds 64-bit "
		"addresses"},
	[TERMINATE_TAGGED_VERSION] = {DDP, FIRST, 4, ENGINE_QP_REQ_ERR,
		"a DDP version other than 1 in a WRITE or a READ response"},
	[TERMINATE_QUEUE] = {DDP, SECOND, 1, ENGINE_QP_REQ_ERR,
		"a DDP queue number that does not fit its message"},
	[TERMINATE_NO_BUFFER] = {DDP, SECOND, 2, ENGINE_QP_REQ_ERR,
		"a message for which no receive was posted, or more READs than "
		"the connection allows"},
	[TERMINATE_SEQUENCE] = {DDP, SECOND, 3, ENGINE_QP_REQ_ERR,
		"a message sequence number that is not the next one"},
	[TERMINATE_OFFSET] = {DDP, SECOND, 4, ENGINE_QP_REQ_ERR,
		"a message offset that is not the next one"},
	[TERMINATE_TOO_LONG] = {DDP, SECOND, 5, ENGINE_QP_REQ_ERR,
		"a message that is longer than its receive"},
	[TERMINATE_UNTAGGED_VERSION] = {DDP, SECOND, 6, ENGINE_QP_REQ_ERR,
		"a DDP version other than 1"},
	[TERMINATE_CLOSED] = {MPA, LOCAL, 1, ENGINE_QP_FATAL,
		"a lost TCP connection or SCTP association"},
	[TERMINATE_CRC] = {MPA, LOCAL, 2, ENGINE_QP_FATAL,
		"a wrong MPA CRC (data was damaged on the way)"},
	[TERMINATE_FRAMING] = {MPA, LOCAL, 3, ENGINE_QP_FATAL,
		"a wrong MPA marker or length, or over SCTP a message that "
		"DDP does not allow"},
	[TERMINATE_MPA_FRAME] = {MPA, LOCAL, 4, ENGINE_QP_FATAL,
		"an invalid MPA request or reply"},
	[TERMINATE_MPA_LOCAL] = {MPA, LOCAL, 5, ENGINE_QP_FATAL,
		"a local error of MPA"},
	[TERMINATE_IRD] = {MPA, LOCAL, 6, ENGINE_QP_FATAL,
		"an initiator_depth of one side above the responder_resources "
		"of the other side (lower the former or raise the latter)"},
	[TERMINATE_RTR] = {MPA, LOCAL, 7, ENGINE_QP_FATAL,
		"a first message that is not a ready-to-receive message of a "
		"kind that both sides know"},
};
/* clang-format on */

const struct terminate_row *terminate_row(enum terminate_cause cause)
{
	return &rows[cause];
}

bool terminate_quotes_ddp(enum terminate_cause cause)
{
	return rows[cause].layer == DDP ||
	       (rows[cause].layer == RDMAP && rows[cause].type != LOCAL);
}

bool terminate_quotes_read(enum terminate_cause cause)
{
	return rows[cause].layer == RDMAP && rows[cause].type == FIRST;
}

enum terminate_cause terminate_find(uint8_t layer, uint8_t type, uint8_t code)
{
	for (int i = TERMINATE_NONE + 1; i < TERMINATE_CAUSES; i++)
		if (rows[i].layer == layer && rows[i].type == type &&
		    rows[i].code == code)
			return (enum terminate_cause)i;
	return TERMINATE_NONE;
}

/* The causes by verdict: for a tagged segment, and for the source of a READ or
 * the target of an atomic. */
static const struct {
	uint8_t tagged, source;
} verdicts[] = {
	/* the queue pair itself lacks the access right */
	[MR_OK] = {TERMINATE_RIGHT, TERMINATE_RIGHT},
	[MR_BAD_KEY] = {TERMINATE_STAG, TERMINATE_SOURCE_STAG},
	[MR_BAD_PD] = {TERMINATE_STAG_STREAM, TERMINATE_SOURCE_STREAM},
	[MR_NO_RIGHT] = {TERMINATE_RIGHT, TERMINATE_RIGHT},
	[MR_OUTSIDE] = {TERMINATE_BOUNDS, TERMINATE_SOURCE_BOUNDS},
	[MR_BAD_QP] = {TERMINATE_STAG_STREAM, TERMINATE_SOURCE_STREAM},
};

enum terminate_cause terminate_of_tagged(enum mr_verdict v)
{
	return (enum terminate_cause)verdicts[v].tagged;
}

enum terminate_cause terminate_of_source(enum mr_verdict v)
{
	return (enum terminate_cause)verdicts[v].source;
}
