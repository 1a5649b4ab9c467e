/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/pma.h"

#include <string.h>

#include "fabric/lane.h"
#include "hdr/bytes.h"

enum {
	ATTR_COUNTERS = 0x12,
	ATTR_VL_PACKETS = 0x19,
	ATTR_VL_DATA = 0x1a,
	ATTR_VL_WAIT = 0x1c,
	ATTR_COUNTERS_EXTENDED = 0x1d,
	AT_DATA = 64,
	DATA_BYTES = 192,
	ALL_PORTS = 255,
	CAP_ALL_PORT_SELECT = 0x0100,
	CAP_EXTENDED = 0x0200,
	CAP_XMIT_WAIT = 0x1000,
	AT_SELECT2 = 18,   /* CounterSelect2 of PortCounters */
	AT_XMIT_WAIT = 40, /* in PortCounters */
	SELECT2_XMIT_WAIT = 1,
	AT_VL = 4, /* the counter of VL 0, in an attribute of by_vl[] */
	PORTS_MAX = 255,
};

/* One counter of an attribute. */
struct layout {
	size_t counter;	 /* offset in struct counters */
	uint8_t at;	 /* offset in the attribute */
	uint8_t bits;	 /* 8, 16, 32 or 64 */
	uint16_t select; /* the bit of CounterSelect with which a Set writes
			    the counter */
};

#define COUNTER(name) offsetof(struct counters, name)

static const struct layout plain[] = {
	{COUNTER(link_downed), 7, 8, 1 << 2},
	{COUNTER(rx_errors), 8, 16, 1 << 3},
	{COUNTER(rx_relay_errors), 12, 16, 1 << 5},
	{COUNTER(tx_discards), 14, 16, 1 << 6},
	{COUNTER(tx_constraint), 16, 8, 1 << 7},
	{COUNTER(rx_constraint), 17, 8, 1 << 8},
	{COUNTER(tx_words), 24, 32, 1 << 12},
	{COUNTER(rx_words), 28, 32, 1 << 13},
	{COUNTER(tx_packets), 32, 32, 1 << 14},
	{COUNTER(rx_packets), 36, 32, 1 << 15},
};

static const struct layout extended[] = {
	{COUNTER(tx_words), 8, 64, 1 << 0},
	{COUNTER(rx_words), 16, 64, 1 << 1},
	{COUNTER(tx_packets), 24, 64, 1 << 2},
	{COUNTER(rx_packets), 32, 64, 1 << 3},
	{COUNTER(tx_unicast), 40, 64, 1 << 4},
	{COUNTER(rx_unicast), 48, 64, 1 << 5},
	{COUNTER(tx_multicast), 56, 64, 1 << 6},
	{COUNTER(rx_multicast), 64, 64, 1 << 7},
};

/* The ports and the CounterSelect of a request. */
struct port_selection {
	struct port *ports[PORTS_MAX];
	uint32_t count;
	uint16_t select;
};

static uint64_t *counter_of(struct port *port, const struct layout *l)
{
	return (uint64_t *)(void *)((char *)&port->counters + l->counter);
}

/* Writes a counter of `bits` bits.  A greater value is written as the greatest
 * value that the counter can have. */
static void put_counter(uint8_t *to, uint8_t bits, uint64_t value)
{
	uint64_t max = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

	if (value > max)
		value = max;
	switch (bits) {
	case 8:
		*to = (uint8_t)value;
		return;
	case 16:
		bytes_put16(to, (uint16_t)value);
		return;
	case 32:
		bytes_put32(to, (uint32_t)value);
		return;
	default:
		bytes_put64(to, value);
	}
}

static uint64_t get_counter(const uint8_t *from, uint8_t bits)
{
	switch (bits) {
	case 8:
		return *from;
	case 16:
		return bytes_get16(from);
	case 32:
		return bytes_get32(from);
	default:
		return bytes_get64(from);
	}
}

/* Finds the ports that a request selects: one port, or all external ports
 * (PortSelect 255).  False: the one port does not exist. */
static bool find_ports(struct packet *p, struct port_selection *ask)
{
	const struct node *node = p->at->node;
	uint8_t number = p->mad[AT_DATA + 1];
	uint32_t first = node_is_switch(node) ? 0 : 1;

	ask->select = bytes_get16(p->mad + AT_DATA + 2);
	ask->count = 0;
	if (number != ALL_PORTS) {
		if (number < first || number > node->port_count)
			return false;
		ask->ports[ask->count++] = &node->ports[number];
		return true;
	}
	for (uint32_t i = 1; i <= node->port_count; i++)
		ask->ports[ask->count++] = &node->ports[i];
	return true;
}

/* Executes a Get or a Set of the n counters l[] of the ports.  A Set writes the
 * counters whose bit is set in CounterSelect.  The answer has the sum over the
 * ports. */
static void run_counters(struct packet *p, const struct port_selection *ask,
			 const struct layout *l, size_t n)
{
	uint8_t *data = p->mad + AT_DATA, number = data[1];
	bool is_set = p->mad[3] == METHOD_SET;

	for (size_t i = 0; is_set && i < n; i++)
		for (uint32_t k = 0;
		     (ask->select & l[i].select) && k < ask->count; k++)
			*counter_of(ask->ports[k], &l[i]) =
				get_counter(data + l[i].at, l[i].bits);
	memset(data, 0, DATA_BYTES);
	data[1] = number;
	bytes_put16(data + 2, ask->select);
	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0;

		for (uint32_t k = 0; k < ask->count; k++)
			sum += *counter_of(ask->ports[k], &l[i]);
		put_counter(data + l[i].at, l[i].bits, sum);
	}
}

/* Executes a Get or a Set of PortCountersExtended. */
static uint16_t run_extended(struct packet *p)
{
	struct port_selection ask;

	if (!find_ports(p, &ask))
		return STATUS_VALUE;
	run_counters(p, &ask, extended, sizeof(extended) / sizeof(*extended));
	return 0;
}

/* Executes a Get or a Set of PortCounters.  Its counter PortXmitWait is not in
 * plain[], because it is no member of struct counters.  A bit of CounterSelect2
 * says whether a Set writes PortXmitWait. */
static uint16_t run_plain(struct packet *p)
{
	uint8_t *data = p->mad + AT_DATA;
	bool is_set = p->mad[3] == METHOD_SET &&
		      (data[AT_SELECT2] & SELECT2_XMIT_WAIT);
	uint32_t wait = bytes_get32(data + AT_XMIT_WAIT);
	struct port_selection ask;
	uint64_t sum = 0;

	if (!find_ports(p, &ask))
		return STATUS_VALUE;
	run_counters(p, &ask, plain, sizeof(plain) / sizeof(*plain));
	for (uint32_t i = 0; i < ask.count; i++) {
		if (is_set)
			lane_set_waited(ask.ports[i], wait);
		sum += lane_waited(ask.ports[i]);
	}
	put_counter(data + AT_XMIT_WAIT, 32, sum);
	return 0;
}

/* An attribute that has one counter for each VL. */
struct vl_layout {
	uint16_t attribute; /* the attribute's ID */
	uint8_t bits;	    /* of each counter: 16 or 32 */
	/* Returns the counter of a VL of a port that has lanes. */
	uint64_t *(*of)(struct port *port, uint32_t vl);
};

static uint64_t *packets_of(struct port *port, uint32_t vl)
{
	return &port->lanes->lane[vl].rx_packets;
}

static uint64_t *words_of(struct port *port, uint32_t vl)
{
	return &port->lanes->lane[vl].rx_words;
}

static uint64_t *wait_of(struct port *port, uint32_t vl)
{
	lane_count_ticks(port);
	return &port->lanes->lane[vl].idle.ticks;
}

static const struct vl_layout by_vl[] = {
	{ATTR_VL_PACKETS, 16, packets_of},
	{ATTR_VL_DATA, 32, words_of},
	{ATTR_VL_WAIT, 16, wait_of},
};

static const struct vl_layout *find_layout(uint16_t attribute)
{
	for (size_t i = 0; i < sizeof(by_vl) / sizeof(*by_vl); i++)
		if (by_vl[i].attribute == attribute)
			return &by_vl[i];
	return NULL;
}

/* Executes a Get or a Set of an attribute with a counter for each VL.  A Set
 * writes the counters of the VLs whose bit is set in CounterSelect, at the
 * ports that have lanes; other ports have counted nothing and stay at 0. */
static uint16_t run_vls(struct packet *p, const struct vl_layout *l)
{
	uint8_t *data = p->mad + AT_DATA, number = data[1];
	bool is_set = p->mad[3] == METHOD_SET;
	uint8_t in[LANES * 4];
	struct port_selection ask;

	if (!find_ports(p, &ask))
		return STATUS_VALUE;
	memcpy(in, data + AT_VL, sizeof(in));
	memset(data, 0, DATA_BYTES);
	data[1] = number;
	bytes_put16(data + 2, ask.select);
	for (uint32_t vl = 0; vl < LANES; vl++) {
		size_t at = vl * l->bits / 8;
		uint64_t sum = 0;

		for (uint32_t k = 0; k < ask.count; k++) {
			if (!ask.ports[k]->lanes)
				continue;
			if (is_set && (ask.select >> vl & 1))
				*l->of(ask.ports[k], vl) =
					get_counter(in + at, l->bits);
			sum += *l->of(ask.ports[k], vl);
		}
		put_counter(data + AT_VL + at, l->bits, sum);
	}
	return 0;
}

static uint16_t class_port_info(struct packet *p)
{
	uint8_t *data = p->mad + AT_DATA;

	if (p->mad[3] == METHOD_SET)
		return STATUS_METHOD;
	memset(data, 0, DATA_BYTES);
	data[0] = data[1] = 1;
	bytes_put16(data + 2,
		    CAP_ALL_PORT_SELECT | CAP_EXTENDED | CAP_XMIT_WAIT);
	data[7] = 16; /* RespTimeValue */
	return 0;
}

enum sma_verdict pma_request(struct packet *p, uint16_t *status)
{
	uint16_t attribute = bytes_get16(p->mad + 16);
	const struct vl_layout *by = find_layout(attribute);

	if (p->mad[3] != METHOD_GET && p->mad[3] != METHOD_SET)
		return SMA_NOT_MINE;
	*status = 0;
	if (p->mad[2] != 1)
		*status = STATUS_BAD_VERSION;
	else if (attribute == ATTR_CLASS_PORT_INFO)
		*status = class_port_info(p);
	else if (attribute == ATTR_COUNTERS)
		*status = run_plain(p);
	else if (by)
		*status = run_vls(p, by);
	else if (attribute == ATTR_COUNTERS_EXTENDED)
		*status = run_extended(p);
	else
		*status = STATUS_ATTRIBUTE;
	return SMA_ANSWER;
}
