/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/grh.h"

#include <string.h>

#include "hdr/ip.h"

bool grh_parse(const uint8_t *p, size_t len, struct grh *grh)
{
	struct ip_v6 ip;

	if (!ip_v6_parse(p, len, &ip))
		return false;
	grh->traffic_class = ip.traffic_class;
	grh->flow_label = ip.flow_label;
	grh->payload_length = ip.payload_length;
	grh->next_header = ip.next_header;
	grh->hop_limit = ip.hop_limit;
	memcpy(grh->sgid, ip.src, sizeof(grh->sgid));
	memcpy(grh->dgid, ip.dst, sizeof(grh->dgid));
	return true;
}

void grh_write(uint8_t *p, const struct grh *grh)
{
	struct ip_v6 ip = {
		.traffic_class = grh->traffic_class,
		.flow_label = grh->flow_label,
		.payload_length = grh->payload_length,
		.next_header = grh->next_header,
		.hop_limit = grh->hop_limit,
	};

	memcpy(ip.src, grh->sgid, sizeof(ip.src));
	memcpy(ip.dst, grh->dgid, sizeof(ip.dst));
	ip_v6_write(p, &ip);
}
