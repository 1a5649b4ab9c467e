/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/net.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define CA_GUIDS       0x100000 /* first GUID without an = line, as in ibsim */
#define SWITCH_GUIDS   0x200000 /* the same of switches, as in ibsim */
#define ROUTER_GUIDS   0x300000 /* the same of routers; ibsim has 0 */
#define WIDTH_4X       2
#define SPEED_SDR      1
#define PORTS_MAX      254 /* port 255 means all ports */

struct parser {
	const char *text, *at, *end;
	struct net *net;
	struct net_error *error;
	char line[LINE_MAX_BYTES + 1];
	size_t line_at;	 /* the offset of the line in the text */
	uint32_t number; /* the line's number, from 1 */
	/* The node whose record the lines belong to; NULL: there is none. */
	struct net_node *node;
	/* How many nodes and ports fit in the arrays of *net. */
	uint32_t nodes_room, ports_room;
	/* The index of both is enum net_type.  guid_base: the GUID of the last
	 * line with `=`, to which a line with `+` adds.  guid_next: the GUID of
	 * the next node. */
	uint64_t guid_base[NET_ROUTER + 1], guid_next[NET_ROUTER + 1];
	/* Values for the next node.  system_guid 0: the node's own GUID. */
	uint64_t system_guid;
	uint32_t vendor, device;
	uint8_t width, speed;
};

__attribute__((format(printf, 2, 3))) static int
refuse_line(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->error->why, sizeof(p->error->why), format, args);
	va_end(args);
	p->error->line = p->number;
	return -EINVAL;
}

/* Copies the next line to p->line without its line end.  Returns 1; 0: there is
 * no further line; or -EINVAL. */
static int next_line(struct parser *p)
{
	size_t left = (size_t)(p->end - p->at), n;
	const char *newline;

	if (!left)
		return 0;
	newline = memchr(p->at, '\n', left);
	n = newline ? (size_t)(newline - p->at) : left;
	p->number++;
	if (n > LINE_MAX_BYTES)
		return refuse_line(p, "the line is longer than %d bytes",
				   LINE_MAX_BYTES);
	if (memchr(p->at, '\0', n))
		return refuse_line(
			p, "the line has a NUL byte; a net file is text");
	p->line_at = (size_t)(p->at - p->text);
	memcpy(p->line, p->at, n);
	if (n && p->line[n - 1] == '\r')
		n--;
	p->line[n] = '\0';
	p->at = newline ? newline + 1 : p->end;
	return 1;
}

static bool begins_with(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/* Finds the first text in double quotes, and sets *begin and *n to its
 * beginning and length.  Returns what follows the second quote; NULL: there is
 * no such text. */
static const char *find_quoted(const char *s, const char **begin, size_t *n)
{
	const char *open = strchr(s, '"');
	const char *close = open ? strchr(open + 1, '"') : NULL;

	if (!close)
		return NULL;
	*begin = open + 1;
	*n = (size_t)(close - open - 1);
	return close + 1;
}

/* Makes room for one more node and `ports` more ports.  Returns 0 or -ENOMEM.
 */
static int make_room(struct parser *p, uint32_t ports)
{
	struct net *net = p->net;
	void *more;

	if (net->node_count == p->nodes_room) {
		uint32_t room = p->nodes_room ? p->nodes_room * 2 : 64;

		more = realloc(net->nodes, room * sizeof(*net->nodes));
		if (!more)
			return -ENOMEM;
		net->nodes = more;
		p->nodes_room = room;
	}
	while (net->port_count + ports > p->ports_room) {
		uint32_t room = p->ports_room ? p->ports_room * 2 : 1024;

		more = realloc(net->ports, room * sizeof(*net->ports));
		if (!more)
			return -ENOMEM;
		net->ports = more;
		p->ports_room = room;
	}
	return 0;
}

/* A name with control characters is refused, since names are printed on
 * terminals. */
static bool has_control(const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == '\x7f')
			return true;
	return false;
}

/* Copies the ID or the description of a node. */
static int copy_name(struct parser *p, char to[NET_NAME_MAX + 1],
		     const char *from, size_t n)
{
	if (!n || n > NET_NAME_MAX)
		return refuse_line(p, "a name has 1 to %d bytes, not %zu",
				   NET_NAME_MAX, n);
	if (has_control(from, n))
		return refuse_line(p, "a name has a control character");
	memcpy(to, from, n);
	to[n] = '\0';
	return 0;
}

/* Reads the description from the comment after the ID: `# "text"`, or text
 * without quotes, which ends where ibnetdiscover writes about port 0 or LIDs.
 * Stores in *rest what follows the description. */
static int parse_description(struct parser *p, const char **rest,
			     struct net_node *node)
{
	static const char *const ends[] = {" enhanced port ", " base port ",
					   " lid ", " lmc "};
	const char *comment = strchr(*rest, '#'), *begin, *after;
	size_t n;

	memcpy(node->description, node->id, sizeof(node->id));
	if (!comment)
		return 0;
	comment += 1 + strspn(comment + 1, " \t");
	after = *comment == '"' ? find_quoted(comment, &begin, &n) : NULL;
	if (after)
		*rest = after;
	if (after)
		return n ? copy_name(p, node->description, begin, n) : 0;
	n = strlen(comment);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const char *end = strstr(comment, ends[i]);

		if (end && (size_t)(end - comment) < n)
			n = (size_t)(end - comment);
	}
	*rest = comment + n;
	return n ? copy_name(p, node->description, comment, n) : 0;
}

/* Finds a whole word in s.  Returns what follows the word and a space; NULL: s
 * has no such word. */
static const char *find_word(const char *s, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = strstr(s, word); at; at = strstr(at + n, word))
		if ((at == s || strchr(" \t", at[-1])) && at[n] == ' ')
			return at + n + 1;
	return NULL;
}

/* Reads the number at s, decimal, octal with a prefix 0 or hexadecimal with a
 * prefix 0x.  Returns what follows it; NULL: there is no number, it has more
 * than 64 bits, or a letter or a digit follows it. */
static const char *read_number(const char *s, uint64_t *value)
{
	char *end;

	s += strspn(s, " \t");
	errno = 0;
	*value = strtoull(s, &end, 0);
	if (!isdigit((unsigned char)*s) || errno ||
	    isalnum((unsigned char)*end))
		return NULL;
	return end;
}

/* Does the line end at s?  Blanks, a comment, and a text in parentheses, which
 * ibnetdiscover writes after a GUID, may follow. */
static bool is_line_end(const char *s)
{
	s += strspn(s, " \t");
	if (*s == '(') {
		s += strcspn(s, ")");
		s += *s == ')';
		s += strspn(s, " \t");
	}
	return !*s || *s == '#';
}

/* Reads `lid N` and `lmc N` from `rest`, the part of a comment that is before
 * or after the description: in a description such words may have another
 * meaning. */
static int parse_lid(struct parser *p, const char *rest, struct net_port *port)
{
	const char *lid = find_word(rest, "lid"), *lmc = find_word(rest, "lmc");
	unsigned long value = lid ? strtoul(lid, NULL, 0) : 0;

	if (value >= 0xc000)
		return refuse_line(p, "LID %lu is not a unicast LID", value);
	port->lid = (uint16_t)value;
	value = lmc ? strtoul(lmc, NULL, 0) : 0;
	if (value > 7)
		return refuse_line(p, "LMC %lu is greater than 7", value);
	port->lmc = (uint8_t)value;
	return 0;
}

static void number_node(struct parser *p, struct net_node *node)
{
	uint64_t guid = p->guid_next[node->type];

	node->guid = guid;
	node->system_guid = p->system_guid ? p->system_guid : guid;
	node->vendor = p->vendor & 0xffffff;
	node->device = (uint16_t)p->device;
	p->guid_next[node->type] +=
		node->type == NET_SWITCH ? 1 : node->ports + 1u;
	/* sysimgguid and vendid hold for one record: ibnetdiscover writes both
	 * before each record. */
	p->system_guid = 0;
	p->vendor = 0;
}

static void init_ports(struct parser *p, const struct net_node *node)
{
	for (uint32_t i = 0; i <= node->ports; i++) {
		struct net_port *port = &p->net->ports[node->first + i];

		memset(port, 0, sizeof(*port));
		port->peer = NET_NO_PORT;
		port->width = p->width;
		port->speed = p->speed;
		if (node->type != NET_SWITCH)
			port->guid = node->guid + i;
		else if (!i)
			port->guid = node->guid;
	}
}

static int parse_node(struct parser *p, enum net_type type, const char *rest)
{
	struct net_node *node;
	const char *begin, *after;
	uint64_t ports;
	size_t n;
	int err;

	rest += strcspn(rest, "0123456789\"");
	if (!read_number(rest, &ports))
		ports = 0;
	after = find_quoted(rest, &begin, &n);
	if (!after || !ports || ports > PORTS_MAX)
		return refuse_line(p,
				   "the line of a node is TYPE PORTS \"ID\", "
				   "with 1 to %d ports",
				   PORTS_MAX);
	if (p->net->node_count == NET_NODES_MAX ||
	    p->net->port_count + ports + 1 > NET_PORTS_MAX)
		return refuse_line(p,
				   "there are more than %d nodes or %d ports",
				   NET_NODES_MAX, NET_PORTS_MAX);
	err = make_room(p, (uint32_t)ports + 1);
	if (err)
		return err;
	node = &p->net->nodes[p->net->node_count];
	memset(node, 0, sizeof(*node));
	node->type = (uint8_t)type;
	node->ports = (uint8_t)ports;
	node->first = p->net->port_count;
	node->line = p->number;
	err = copy_name(p, node->id, begin, n);
	if (!err)
		err = parse_description(p, &after, node);
	if (err)
		return err;
	node->has_enhanced_port0 =
		type == NET_SWITCH && strstr(after, "enhanced port 0");
	number_node(p, node);
	p->net->node_count++;
	p->net->port_count += (uint32_t)ports + 1;
	p->node = node;
	init_ports(p, node);
	if (type != NET_SWITCH)
		return 0;
	return parse_lid(p, after, &p->net->ports[node->first]);
}

/* Reads `(GUID)`, which ibnetdiscover writes after the number of an adapter's
 * port.  Returns what follows `(GUID)`. */
static const char *parse_guid(const char *s, uint64_t *guid)
{
	char *end;
	uint64_t value;

	if (*s != '(')
		return s;
	value = strtoull(s + 1, &end, 16);
	if (*end != ')')
		return s;
	if (guid && value)
		*guid = value;
	return end + 1;
}

/* Sets the width (`w=MASK`) or the speed (`s=MASK`) of a port. */
static int parse_option(struct parser *p, char option, const char *value,
			struct net_port *port)
{
	uint64_t mask;

	if (!read_number(value, &mask))
		mask = 0;
	if (option == 'w' && mask >= 1 && mask <= 15) {
		port->width = (uint8_t)mask;
		return 0;
	}
	if (option == 's' && mask >= 1 && mask <= 7) {
		port->speed = (uint8_t)mask;
		return 0;
	}
	return refuse_line(p, "a port's only options are w=1..15 and s=1..7");
}

/* Reads width and speed from the last word of a comment that ibnetdiscover has
 * written, such as `4xSDR`. */
static void parse_rate(const char *comment, struct net_port *port)
{
	static const struct {
		const char *word;
		uint8_t width, speed;
	} rates[] = {{"1xSDR", 1, 1},  {"1xDDR", 1, 2},	 {"1xQDR", 1, 4},
		     {"4xSDR", 2, 1},  {"4xDDR", 2, 2},	 {"4xQDR", 2, 4},
		     {"8xSDR", 4, 1},  {"8xDDR", 4, 2},	 {"8xQDR", 4, 4},
		     {"12xSDR", 8, 1}, {"12xDDR", 8, 2}, {"12xQDR", 8, 4}};
	const char *word = strrchr(comment, ' ');

	for (size_t i = 0; word && i < sizeof(rates) / sizeof(*rates); i++) {
		if (strcmp(word + 1, rates[i].word) != 0)
			continue;
		port->width = rates[i].width;
		port->speed = rates[i].speed;
	}
}

/* Reads what follows the peer's port number: options, then a comment.  In the
 * comment of an adapter's port the port's own LID comes first.  The peer's
 * description, in quotes, and the peer's LID come after it and are not read. */
static int parse_port_rest(struct parser *p, char *rest, struct net_port *port)
{
	char *comment = strchr(rest, '#');
	int err = 0;

	if (comment) {
		*comment++ = '\0';
		parse_rate(comment, port);
		comment[strcspn(comment, "\"")] = '\0';
		if (p->node->type != NET_SWITCH)
			err = parse_lid(p, comment, port);
	}
	for (char *equals = strchr(rest, '='); equals && !err;
	     equals = strchr(equals + 1, '='))
		err = parse_option(p, equals > rest ? equals[-1] : '\0',
				   equals + 1, port);
	return err;
}

static int parse_port(struct parser *p)
{
	struct net_port *port;
	char *s;
	unsigned long number = strtoul(p->line + 1, &s, 10), peer = 1;
	const char *begin, *after;
	size_t n;

	if (*s != ']' || !number || number > p->node->ports)
		return refuse_line(
			p,
			"the line of a cable is [PORT] \"ID\"[PORT], and "
			"this node has ports 1 to %d",
			p->node->ports);
	port = &p->net->ports[p->node->first + number];
	if (port->peer_number)
		return refuse_line(p, "port %lu has two cables", number);
	parse_guid(s + 1, p->node->type == NET_SWITCH ? NULL : &port->guid);
	after = find_quoted(s, &begin, &n);
	if (!after || !n || n > NET_NAME_MAX)
		return refuse_line(p,
				   "the other end of the cable has no ID of 1 "
				   "to %d bytes",
				   NET_NAME_MAX);
	if (has_control(begin, n))
		return refuse_line(p, "a name has a control character");
	if (*after == '[')
		peer = strtoul(after + 1, &s, 10);
	if (*after == '[' && *s++ != ']')
		peer = 0;
	else if (*after != '[')
		s = p->line + (after - p->line);
	if (!peer || peer > PORTS_MAX)
		return refuse_line(p, "the other end of the cable has no port "
				      "number of 1 to 254");
	port->peer_at = (uint32_t)(p->line_at + (size_t)(begin - p->line));
	port->peer_bytes = (uint8_t)n;
	port->peer_number = (uint8_t)peer;
	return parse_port_rest(p, p->line + (parse_guid(s, NULL) - p->line),
			       port);
}

static int parse_guids(struct parser *p, enum net_type type)
{
	const char *sign = strpbrk(p->line, "=+");
	uint64_t value;
	const char *after = sign ? read_number(sign + 1, &value) : NULL;

	if (!after || !is_line_end(after))
		return refuse_line(p, "in a line of GUIDs the name has to be "
				      "followed by =GUID or +N");
	if (*sign == '=')
		p->guid_base[type] = p->guid_next[type] = value;
	else
		p->guid_next[type] = p->guid_base[type] + value;
	return 0;
}

static int parse_number(struct parser *p, uint64_t max, uint64_t *value)
{
	const char *equals = strchr(p->line, '=');
	const char *after = equals ? read_number(equals + 1, value) : NULL;

	if (after && is_line_end(after) && *value <= max)
		return 0;
	return refuse_line(p,
			   "the name of a setting has to be followed by = and "
			   "a number from 0 to %llu",
			   (unsigned long long)max);
}

static int parse_setting(struct parser *p)
{
	uint64_t value = 0;
	int err = 0;

	if (begins_with(p->line, "switchguid"))
		return parse_guids(p, NET_SWITCH);
	if (begins_with(p->line, "hcaguids") || begins_with(p->line, "caguid"))
		return parse_guids(p, NET_CA);
	if (begins_with(p->line, "rtguid"))
		return parse_guids(p, NET_ROUTER);
	if (begins_with(p->line, "sysimgguid"))
		return parse_number(p, UINT64_MAX, &p->system_guid);
	if (begins_with(p->line, "vendid")) {
		err = parse_number(p, 0xffffff, &value);
		p->vendor = (uint32_t)value;
	} else if (begins_with(p->line, "devid")) {
		err = parse_number(p, UINT32_MAX, &value);
		p->device = (uint32_t)value;
	} else if (begins_with(p->line, "width")) {
		err = parse_number(p, 15, &value);
		p->width = value ? (uint8_t)value : WIDTH_4X;
	} else if (begins_with(p->line, "speed")) {
		err = parse_number(p, 7, &value);
		p->speed = value ? (uint8_t)value : SPEED_SDR;
	}
	return err;
}

static int refuse_command(struct parser *p)
{
	static const char *const words[] = {"include ", "include\"", "do ",
					    "module"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (begins_with(p->line, words[i]))
			return refuse_line(p,
					   "adverb does not read `%.*s` of "
					   "ibsim: write the whole topology "
					   "into one file",
					   (int)strcspn(words[i], " \""),
					   words[i]);
	return 0;
}

static int parse_line(struct parser *p)
{
	int err;

	if (p->line[0] == '#')
		return 0;
	if (p->line[0] == '[' && p->node)
		return parse_port(p);
	if (p->line[0] == '@')
		return refuse_line(p, "adverb does not read aliases (@) of "
				      "ibsim: name the node");
	if (p->line[0] == '[')
		return refuse_line(p, "a cable must directly follow its "
				      "node's line or another cable");
	p->node = NULL;
	if (begins_with(p->line, "Switch"))
		return parse_node(p, NET_SWITCH, p->line + 6);
	if (begins_with(p->line, "Hca"))
		return parse_node(p, NET_CA, p->line + 3);
	if (begins_with(p->line, "Ca"))
		return parse_node(p, NET_CA, p->line + 2);
	if (begins_with(p->line, "Rt"))
		return parse_node(p, NET_ROUTER, p->line + 2);
	err = refuse_command(p);
	return err ? err : parse_setting(p);
}

static int by_id(const void *a, const void *b)
{
	const struct net_node *const *one = a, *const *other = b;

	int order = strcmp((*one)->id, (*other)->id);

	return order ? order : (*one)->line < (*other)->line ? -1 : 1;
}

static int by_guid(const void *a, const void *b)
{
	const struct net_node *const *one = a, *const *other = b;

	if ((*one)->guid != (*other)->guid)
		return (*one)->guid < (*other)->guid ? -1 : 1;
	return (*one)->line < (*other)->line ? -1 : 1;
}

static struct net_node *find_sorted(struct net_node **sorted, uint32_t count,
				    const char *id)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(id, sorted[middle]->id);

		if (!order)
			return sorted[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* Finds the port at the other end of a port's cable. */
static int join_port(struct parser *p, struct net_node **sorted,
		     const struct net_node *node, uint32_t number)
{
	struct net *net = p->net;
	struct net_port *port = &net->ports[node->first + number];
	char id[NET_NAME_MAX + 1];
	struct net_node *peer;

	if (!port->peer_number)
		return 0;
	p->number = node->line;
	memcpy(id, p->text + port->peer_at, port->peer_bytes);
	id[port->peer_bytes] = '\0';
	peer = find_sorted(sorted, net->node_count, id);
	if (!peer || port->peer_number > peer->ports)
		return refuse_line(
			p,
			"port %u of \"%s\" has a cable to port %u of "
			"\"%s\", which is not in the file",
			number, node->id, port->peer_number, id);
	port->peer = peer->first + port->peer_number;
	port->peer_node = (uint32_t)(peer - net->nodes);
	return 0;
}

static int check_cable(struct parser *p, const struct net_node *node,
		       uint32_t number)
{
	const struct net *net = p->net;
	const struct net_port *port = &net->ports[node->first + number];
	const struct net_port *peer;

	if (port->peer == NET_NO_PORT)
		return 0;
	peer = &net->ports[port->peer];
	p->number = node->line;
	if (peer->peer != node->first + number || peer == port)
		return refuse_line(
			p,
			"port %u of \"%s\" has a cable to port %u of "
			"\"%s\", which has no cable back",
			number, node->id, port->peer_number,
			net->nodes[port->peer_node].id);
	if (!(port->width & peer->width) || !(port->speed & peer->speed))
		return refuse_line(p,
				   "port %u of \"%s\" and port %u of \"%s\" "
				   "have no width or speed in common",
				   number, node->id, port->peer_number,
				   net->nodes[port->peer_node].id);
	return 0;
}

/* A port with a GUID. */
struct guid_port {
	uint64_t guid;
	const struct net_node *node;
	uint32_t number;
};

static int by_port_guid(const void *a, const void *b)
{
	const struct guid_port *one = a, *other = b;

	if (one->guid != other->guid)
		return one->guid < other->guid ? -1 : 1;
	if (one->node != other->node)
		return one->node < other->node ? -1 : 1;
	return one->number < other->number ? -1 : 1;
}

/* Copies the ports with GUIDs to *list.  Returns their number. */
static uint32_t list_guids(const struct net *net, struct guid_port *list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < net->node_count; i++) {
		const struct net_node *node = &net->nodes[i];
		bool is_switch = node->type == NET_SWITCH;

		/* Only a switch has a port 0. */
		for (uint32_t n = !is_switch; n <= node->ports; n++)
			if (net->ports[node->first + n].guid)
				list[count++] = (struct guid_port){
					net->ports[node->first + n].guid, node,
					n};
	}
	return count;
}

/* Refuses two ports with the same GUID, since OpenSM takes them for one. */
static int check_port_guids(struct parser *p)
{
	struct guid_port *list = calloc(p->net->port_count, sizeof(*list));
	uint32_t count;
	int err = 0;

	if (!list)
		return -ENOMEM;
	count = list_guids(p->net, list);
	qsort(list, count, sizeof(*list), by_port_guid);
	for (uint32_t i = 1; i < count && !err; i++) {
		const struct guid_port *a = &list[i - 1], *b = &list[i];

		if (a->guid != b->guid)
			continue;
		p->number = b->node->line;
		err = refuse_line(p,
				  "port %u of \"%s\" and port %u of \"%s\" "
				  "have the same GUID 0x%" PRIx64,
				  a->number, a->node->id, b->number,
				  b->node->id, b->guid);
	}
	free(list);
	return err;
}

/* Refuses two nodes with the same ID or the same GUID.  Leaves the nodes sorted
 * by ID. */
static int check_names(struct parser *p, struct net_node **sorted)
{
	uint32_t count = p->net->node_count;

	qsort(sorted, count, sizeof(struct net_node *), by_guid);
	for (uint32_t i = 1; i < count; i++) {
		if (sorted[i - 1]->guid != sorted[i]->guid)
			continue;
		p->number = sorted[i]->line;
		return refuse_line(p, "\"%s\" and \"%s\" have the same GUID",
				   sorted[i - 1]->id, sorted[i]->id);
	}
	qsort(sorted, count, sizeof(struct net_node *), by_id);
	for (uint32_t i = 1; i < count; i++) {
		if (strcmp(sorted[i - 1]->id, sorted[i]->id) != 0)
			continue;
		p->number = sorted[i]->line;
		return refuse_line(p, "two nodes have the ID \"%s\"",
				   sorted[i]->id);
	}
	return 0;
}

static int join_all(struct parser *p, struct net_node **sorted)
{
	const struct net *net = p->net;
	int err = 0;

	for (uint32_t i = 0; i < net->node_count; i++)
		for (uint32_t n = 1; n <= net->nodes[i].ports && !err; n++)
			err = join_port(p, sorted, &net->nodes[i], n);
	for (uint32_t i = 0; i < net->node_count; i++)
		for (uint32_t n = 1; n <= net->nodes[i].ports && !err; n++)
			err = check_cable(p, &net->nodes[i], n);
	return err;
}

static int join_cables(struct parser *p)
{
	struct net *net = p->net;
	struct net_node **sorted;
	int err;

	p->number = 0;
	if (!net->node_count)
		return refuse_line(p, "the file has no node; see the net "
				      "examples of ibsim");
	sorted = calloc(net->node_count, sizeof(struct net_node *));
	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->node_count; i++)
		sorted[i] = &net->nodes[i];
	err = check_names(p, sorted);
	if (!err)
		err = check_port_guids(p);
	if (!err)
		err = join_all(p, sorted);
	free(sorted);
	return err;
}

int net_parse(const char *text, size_t bytes, struct net *net,
	      struct net_error *error)
{
	struct parser p = {
		.text = text,
		.at = text,
		.end = text + bytes,
		.net = net,
		.error = error,
		.guid_base = {0, CA_GUIDS, SWITCH_GUIDS, ROUTER_GUIDS},
		.guid_next = {0, CA_GUIDS, SWITCH_GUIDS, ROUTER_GUIDS},
		.width = WIDTH_4X,
		.speed = SPEED_SDR};
	int err = 0;

	memset(net, 0, sizeof(*net));
	memset(error, 0, sizeof(*error));
	if (bytes > NET_BYTES_MAX)
		err = refuse_line(&p, "the file has more than %d bytes",
				  NET_BYTES_MAX);
	while (!err) {
		err = next_line(&p);
		if (err <= 0)
			break;
		err = parse_line(&p);
	}
	if (!err)
		err = join_cables(&p);
	if (err)
		net_free(net);
	return err;
}

void net_free(struct net *net)
{
	free(net->nodes);
	free(net->ports);
	memset(net, 0, sizeof(*net));
}
