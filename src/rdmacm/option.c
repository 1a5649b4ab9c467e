/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of ids. */
#include "rdmacm/explain.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <string.h>

static int id_option(struct r_id *id, int name, const void *value, size_t size)
{
	bool is_int = size == sizeof(int);
	int number = 0;

	if (is_int)
		memcpy(&number, value, sizeof(number));
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (size != 1)
			break;
		id->options.tos = *(const uint8_t *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (!is_int)
			break;
		id->options.may_share = number != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (!is_int || r_is_bound(id))
			break;
		id->options.is_family_only = number != 0;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (size != 1 || *(const uint8_t *)value > 31)
			break;
		id->options.ack_timeout = *(const uint8_t *)value;
		return 0;
	default:
		return r_fail(ENOSYS,
			      "rdma_set_option: option %d of level "
			      "RDMA_OPTION_ID is unknown; the options are TOS, "
			      "REUSEADDR, AFONLY and ACK_TIMEOUT",
			      name);
	}
	return r_fail(EINVAL,
		      "rdma_set_option: the value of option %d has a wrong "
		      "size, is out of range, or is set after the id was "
		      "bound; man rdma_set_option has the types and ranges",
		      name);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
		    size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return id_option(r_id(id), optname, optval, optlen);
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return r_route_given(r_id(id), optval, optlen);
	return r_fail(ENOSYS,
		      "rdma_set_option: option %d of level %d is unknown; the "
		      "levels are RDMA_OPTION_ID, and RDMA_OPTION_IB with "
		      "RDMA_OPTION_IB_PATH",
		      optname, level);
}
