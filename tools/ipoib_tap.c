/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUN_FILE   "/dev/net/tun"
#define READ_BYTES (64 << 10) /* bytes that one read(2) should get */

bool ipoib_tap_parse(const char *text, struct ipoib_tap_address *a)
{
	char ip[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	char *end;
	unsigned long prefix;

	if (!slash || (size_t)(slash - text) >= sizeof(ip) || slash[1] < '0' ||
	    slash[1] > '9')
		return false;
	snprintf(ip, sizeof(ip), "%.*s", (int)(slash - text), text);
	a->family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	prefix = strtoul(slash + 1, &end, 10);
	a->prefix = (uint8_t)prefix;
	return inet_pton(a->family, ip, a->ip) == 1 && !*end &&
	       prefix <= (a->family == AF_INET ? 32u : 128u);
}

static void say_no_device(const char *name, int err)
{
	static const char todo[] =
		"start adverb ipoib in a network namespace of its own (`adverb "
		"run --private --fabric -- adverb ipoib`), or as root";

	if (err == EPERM)
		fprintf(stderr,
			"adverb: the interface %s cannot be made: this user "
			"has no right to make interfaces in this network "
			"namespace (CAP_NET_ADMIN); %s.\n",
			name, todo);
	else if (err == EBUSY)
		fprintf(stderr,
			"adverb: the interface %s cannot be made: another "
			"program has an interface of this name in this network "
			"namespace; choose another name by --name.\n",
			name);
	else if (err == EINVAL)
		fprintf(stderr,
			"adverb: the interface %s cannot be made: the name is "
			"not that of an interface, or the network namespace "
			"has an interface of another kind by this name; choose "
			"another name by --name.\n",
			name);
	else
		fprintf(stderr,
			"adverb: the interface %s cannot be made: %s.\n", name,
			strerror(err));
}

static int open_tun(void)
{
	int fd = open(TUN_FILE, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		return fd;
	fprintf(stderr, "adverb: " TUN_FILE " cannot be opened: %s; %s.\n",
		strerror(errno),
		errno == EACCES || errno == EPERM
			? "give this user the right to read and write it"
			: "load the kernel's module tun, or let the container "
			  "have the device");
	return -1;
}

/* Writes a setting of the interface, if the kernel has the setting: a kernel
 * without IPv6 has none of IPv6. */
static void write_setting(const char *name, const char *family,
			  const char *setting, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family,
		 name, setting);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) < 0)
		errno = 0;
	close(fd);
}

int ipoib_tap_open(struct ipoib_tap *t, const char *name)
{
	struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	t->fd = open_tun();
	if (t->fd < 0)
		return -1;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (ioctl(t->fd, TUNSETIFF, &r)) {
		say_no_device(name, errno);
		close(t->fd);
		return -1;
	}
	memcpy(t->name, r.ifr_name, sizeof(t->name));
	t->name[IFNAMSIZ - 1] = '\0';
	t->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (t->control < 0) {
		say_no_device(name, errno);
		close(t->fd);
		return -1;
	}
	ipoib_tap_set_carrier(t, false);
	/* With this setting the kernel makes no link-local address from the
	 * MAC.  adverb adds the link-local address of the port's GID. */
	write_setting(t->name, "ipv6", "addr_gen_mode", "1");
	/* An interface that starts again has another QPN.  With this setting
	 * the kernel sends a neighbour advertisement when duplicate address
	 * detection has ended, so that hosts which know the old QPN learn the
	 * new one. */
	write_setting(t->name, "ipv6", "ndisc_notify", "1");
	return 0;
}

static struct ifreq request_of(const struct ipoib_tap *t)
{
	struct ifreq r = {0};

	memcpy(r.ifr_name, t->name, sizeof(r.ifr_name));
	return r;
}

static int control_it(const struct ipoib_tap *t, unsigned long what,
		      struct ifreq *r)
{
	return ioctl(t->control, what, r) ? -errno : 0;
}

int ipoib_tap_set_mac(const struct ipoib_tap *t, const uint8_t mac[6])
{
	struct ifreq r = request_of(t);

	r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(r.ifr_hwaddr.sa_data, mac, 6);
	return control_it(t, SIOCSIFHWADDR, &r);
}

int ipoib_tap_set_mtu(const struct ipoib_tap *t, uint32_t mtu)
{
	struct ifreq r = request_of(t);

	r.ifr_mtu = (int)mtu;
	return control_it(t, SIOCSIFMTU, &r);
}

int ipoib_tap_set_carrier(const struct ipoib_tap *t, bool is_on)
{
	int value = is_on;

	return ioctl(t->fd, TUNSETCARRIER, &value) ? -errno : 0;
}

int ipoib_tap_enable(const struct ipoib_tap *t)
{
	struct ifreq r = request_of(t);
	int err = control_it(t, SIOCGIFFLAGS, &r);

	r.ifr_flags |= IFF_UP;
	return err ? err : control_it(t, SIOCSIFFLAGS, &r);
}

/* The message that adds an address. */
struct add_message {
	struct nlmsghdr head;
	struct ifaddrmsg body;
	char attributes[128];
};

static void add_attribute(struct add_message *m, uint16_t type,
			  const void *data, size_t bytes)
{
	struct rtattr *at =
		(void *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(at), data, bytes);
	m->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->head.nlmsg_len) +
				       RTA_ALIGN(at->rta_len));
}

static void add_broadcast(struct add_message *m,
			  const struct ipoib_tap_address *a)
{
	uint32_t ip, host = a->prefix ? (uint32_t)(~0ull >> a->prefix >> 32)
				      : UINT32_MAX;

	memcpy(&ip, a->ip, sizeof(ip));
	ip |= htonl(host);
	add_attribute(m, IFA_BROADCAST, &ip, sizeof(ip));
}

/* Sends a request, and returns the kernel's answer: 0 or -errno. */
static int ask_kernel(const struct nlmsghdr *request)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
		char rest[512];
	} answer = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (send(fd, request, request->nlmsg_len, 0) >= 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	err = n < 0 ? -errno : 0;
	if (n >= (ssize_t)(sizeof(answer.head) + sizeof(answer.body)) &&
	    answer.head.nlmsg_type == NLMSG_ERROR)
		err = answer.body.error;
	close(fd);
	return err;
}

int ipoib_tap_add(const struct ipoib_tap *t, const struct ipoib_tap_address *a)
{
	struct add_message m = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m.body)),
			 .nlmsg_type = RTM_NEWADDR,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					NLM_F_CREATE | NLM_F_EXCL},
		.body = {.ifa_family = (uint8_t)a->family,
			 .ifa_prefixlen = a->prefix,
			 .ifa_index = if_nametoindex(t->name)},
	};
	size_t bytes = a->family == AF_INET ? 4 : 16;

	if (!m.body.ifa_index)
		return -ENODEV;
	add_attribute(&m, IFA_LOCAL, a->ip, bytes);
	add_attribute(&m, IFA_ADDRESS, a->ip, bytes);
	if (a->family == AF_INET && a->prefix < 31)
		add_broadcast(&m, a);
	return ask_kernel(&m.head);
}

/* Reads a whole file into *text, which the caller frees also after an error.  A
 * table of /proc has lines for each interface of the network namespace, so its
 * length has no limit.  Returns 0 or -errno. */
static int read_text(const char *path, char **text)
{
	static char buffer[READ_BYTES];
	FILE *file = fopen(path, "re");
	size_t room = 0;
	ssize_t n;
	int err;

	*text = NULL;
	if (!file)
		return -errno;
	/* each read(2) gets as much as the kernel gives at once: a line may be
	 * missed between two reads if the table changes */
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	/* the kernel writes no NUL, so this reads up to the end of the file */
	n = getdelim(text, &room, '\0', file);
	err = ferror(file) || (n < 0 && !feof(file)) ? -errno : 0;
	fclose(file);
	if (!err && n < 0)
		**text = '\0'; /* the file is empty */
	return err;
}

static bool read_groups(const char *name, struct joined *j)
{
	char *text;
	int err = read_text("/proc/self/net/igmp", &text);

	if (!err)
		joined_add_igmp(j, text, name);
	free(text);
	if (err)
		return false;
	err = read_text("/proc/self/net/igmp6", &text);
	if (!err)
		joined_add_igmp6(j, text, name);
	free(text);
	/* a kernel without IPv6 has no such file */
	return !err || err == -ENOENT;
}

/* Reads the present name of the interface, which another program may have
 * renamed. */
static void learn_name(struct ipoib_tap *t)
{
	struct ifreq r = {0};

	if (ioctl(t->fd, TUNGETIFF, &r))
		return;
	memcpy(t->name, r.ifr_name, sizeof(t->name));
	t->name[IFNAMSIZ - 1] = '\0';
}

/* getifaddrs(3) gives the label of an IPv4 address for the interface's name:
 * the name itself, or with ':' and further letters. */
static bool is_ipv4_of(const struct ipoib_tap *t, const struct ifaddrs *a)
{
	size_t bytes = strlen(t->name);

	return a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
	       !strncmp(a->ifa_name, t->name, bytes) &&
	       (!a->ifa_name[bytes] || a->ifa_name[bytes] == ':');
}

static uint32_t list_ipv4(const struct ipoib_tap *t,
			  struct announce_address *all, uint32_t room)
{
	struct ifaddrs *list;
	uint32_t count = 0;

	if (getifaddrs(&list))
		return 0;
	for (struct ifaddrs *a = list; a && count < room; a = a->ifa_next) {
		struct sockaddr_in *in = (void *)a->ifa_addr;

		if (!is_ipv4_of(t, a))
			continue;
		all[count] = (struct announce_address){.is_v6 = false};
		memcpy(all[count++].ip, &in->sin_addr, 4);
	}
	freeifaddrs(list);
	return count;
}

/* Reads a line of /proc/net/if_inet6.  Returns whether the line has an address
 * of the interface for which duplicate address detection is over and has not
 * failed. */
static bool read_ipv6(const struct ipoib_tap *t, const char *line,
		      struct announce_address *a)
{
	char digits[33], name[IFNAMSIZ];
	unsigned int flags;

	a->is_v6 = true;
	if (sscanf(line, "%32[0-9a-f] %*x %*x %*x %x %15s", digits, &flags,
		   name) != 3 ||
	    strlen(digits) != 32 || strcmp(name, t->name) != 0)
		return false;
	for (int i = 0; i < 16; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &a->ip[i]) != 1)
			return false;
	return !(flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED));
}

static uint32_t list_ipv6(const struct ipoib_tap *t,
			  struct announce_address *all, uint32_t room)
{
	FILE *file = fopen("/proc/self/net/if_inet6", "re");
	char line[128];
	uint32_t count = 0;

	/* a kernel without IPv6 has no such file */
	if (!file)
		return 0;
	while (count < room && fgets(line, sizeof(line), file))
		count += read_ipv6(t, line, &all[count]);
	fclose(file);
	return count;
}

uint32_t ipoib_tap_addresses(struct ipoib_tap *t, struct announce_address *all,
			     uint32_t room)
{
	uint32_t count;

	learn_name(t);
	count = list_ipv4(t, all, room);
	return count + list_ipv6(t, all + count, room - count);
}

bool ipoib_tap_joined(struct ipoib_tap *t, struct joined *j)
{
	j->count = 0;
	learn_name(t);
	return read_groups(t->name, j);
}
