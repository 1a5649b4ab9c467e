/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels.  None opens: programs are written for a machine without
 * devices to fail here, and stumble (cmtime frees twice) if it is only at their
 * first id.
 */
#include "rdmacm/explain.h"
#include "rdmacm/newer.h"

#include <errno.h>
#include <stddef.h>

struct rdma_event_channel *rdma_create_event_channel(void)
{
	r_no_cm("rdma_create_event_channel");
	return NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
}

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **event)
{
	return r_no_cm("rdma_get_cm_event");
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	errno = EINVAL;
	return -1;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg)
{
	return r_no_cm("rdma_write_cm_event");
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	/* clang-format off */
	static const char *const names[] = {
#define NAME(event) [event] = #event
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
#undef NAME
	};
	/* clang-format on */

	if ((unsigned int)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
