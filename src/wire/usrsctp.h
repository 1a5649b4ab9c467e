/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libusrsctp (Debian: libusrsctp2), an implementation of SCTP in user space.
 * usrsctp_load loads the library.  The declarations are adverb's own, so the
 * build does not need the library's header, and a program that does not use
 * SCTP does not need the library.  Structures and numbers are the library's;
 * RFC 6458 describes most of them.  tests/unit/test_usrsctp.c compares them
 * with the library's header where that header is installed.
 *
 * The library opens no socket of the kernel and runs no timer thread.  adverb
 * gives the library packets by `conninput` and the time by `handle_timers`, and
 * the library sends packets by the function given to usrsctp_load.  Addresses
 * are those of AF_CONN: numbers of 64 bits, which the library compares and
 * returns.
 *
 * Lock: the caller's, for all calls.
 */
#ifndef WIRE_USRSCTP_H
#define WIRE_USRSCTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define USRSCTP_AF_CONN	     123
#define USRSCTP_NOTIFICATION 0x2000 /* in *flags of recvv: a notification */
#define USRSCTP_UNORDERED    0x0400 /* in usrsctp_sndinfo.flags */

/* The options of sockets, of level IPPROTO_SCTP. */
enum usrsctp_option {
	USRSCTP_RTOINFO = 0x01,
	USRSCTP_INITMSG = 0x03,
	USRSCTP_NODELAY = 0x04,
	USRSCTP_ADAPTATION_LAYER = 0x08,
	USRSCTP_PEER_ADDR_PARAMS = 0x0a,
	USRSCTP_DELAYED_SACK = 0x0f,
	USRSCTP_EVENT = 0x1e,
	USRSCTP_RECVRCVINFO = 0x1f,
	USRSCTP_STATUS = 0x100,
};

enum usrsctp_ready { /* bits that get_events returns */
		     USRSCTP_READ = 1,
		     USRSCTP_WRITE = 2,
		     USRSCTP_ERROR = 4,
};

struct usrsctp_address {
	uint16_t family; /* USRSCTP_AF_CONN */
	uint16_t port;	 /* the port of SCTP, in network order */
	void *id;	 /* the number of the address, not a pointer */
};

/* An address that recvv writes, with room for an address of any family, as in
 * the library's union sctp_sockstore. */
union usrsctp_peer {
	struct usrsctp_address conn;
	uint8_t room[28];
};

struct usrsctp_sndinfo {
	uint16_t stream, flags;
	uint32_t ppid; /* in network order, as in usrsctp_rcvinfo */
	uint32_t context, association;
};

struct usrsctp_rcvinfo {
	uint16_t stream, ssn, flags;
	uint32_t ppid, tsn, cumulative_tsn, context, association;
};

struct usrsctp_rtoinfo {
	uint32_t association, initial_ms, max_ms, min_ms;
};

struct usrsctp_initmsg {
	uint16_t streams_out, streams_in, attempts, max_ms;
};

struct usrsctp_paddrparams {
	struct sockaddr_storage address;
	uint32_t association, heartbeat_ms, path_mtu, flags, flow_label;
	uint16_t retransmissions;
	uint8_t dscp;
};
enum usrsctp_path_flag {
	USRSCTP_HEARTBEAT = 0x01,
	USRSCTP_FIXED_MTU = 0x10,
};

struct usrsctp_sack_info {
	uint32_t association, delay_ms, frequency;
};

struct usrsctp_event {
	uint32_t association;
	uint16_t type;
	uint8_t is_on;
};
enum usrsctp_event_type {
	USRSCTP_ASSOC_CHANGE = 1,
	USRSCTP_SHUTDOWN_EVENT = 5,
	USRSCTP_ADAPTATION_INDICATION = 6,
};

/* Each notification begins with type, flags and length. */
struct usrsctp_assoc_change {
	uint16_t type, flags;
	uint32_t length;
	uint16_t state, error, streams_out, streams_in;
	uint32_t association;
};
enum usrsctp_state {
	USRSCTP_COMM_UP = 1,
	USRSCTP_COMM_LOST = 2,
	USRSCTP_RESTART = 3,
	USRSCTP_SHUTDOWN_COMP = 4,
	USRSCTP_CANT_START = 5,
};

struct usrsctp_adaptation {
	uint16_t type, flags;
	uint32_t length, indication, association;
};

struct usrsctp_status {
	uint32_t association;
	int32_t state;
	uint32_t window;
	uint16_t unacknowledged, pending, streams_in, streams_out;
	uint32_t fragmentation_point;
	struct {
		struct sockaddr_storage address;
		uint32_t association;
		int32_t state;
		uint32_t cwnd, srtt, rto, mtu;
	} path;
};

struct socket; /* the library's */

#define USRSCTP_WITH_SNDINFO 1u /* the kind of info that sendv gets */

/*
 * The functions of the library that adverb loads: usrsctp_*.  On failure
 * `socket` and `accept` return NULL with errno, and every other function that
 * has a result, except get_events, returns -1 with errno.  The caller closes
 * the sockets that `socket` and `accept` return.
 *
 * An `id` is that of a peer's usrsctp_address, and is registered as long as a
 * socket uses it.  `conninput` handles a packet of SCTP that has come from the
 * peer `id`, and does not keep `packet`.  The library calls `upcall` with `arg`
 * when get_events of the socket may return other bits than before.
 */
struct usrsctp_calls {
	void (*init_nothreads)(uint16_t port,
			       int (*output)(void *id, void *packet,
					     size_t bytes, uint8_t tos,
					     uint8_t set_df),
			       void (*say)(const char *format, ...));
	struct socket *(*socket)(int family, int type, int protocol,
				 void *receive, void *send, uint32_t threshold,
				 void *arg);
	int (*setsockopt)(struct socket *so, int level, int option,
			  const void *value, socklen_t size);
	int (*getsockopt)(struct socket *so, int level, int option, void *value,
			  socklen_t *size);
	ssize_t (*sendv)(struct socket *so, const void *data, size_t bytes,
			 struct sockaddr *to, int count, void *info,
			 socklen_t info_size, unsigned int info_type,
			 int flags);
	ssize_t (*recvv)(struct socket *so, void *data, size_t room,
			 struct sockaddr *from, socklen_t *from_size,
			 void *info, socklen_t *info_size,
			 unsigned int *info_type, int *flags);
	int (*bind)(struct socket *so, struct sockaddr *at, socklen_t size);
	int (*listen)(struct socket *so, int backlog);
	struct socket *(*accept)(struct socket *so, struct sockaddr *from,
				 socklen_t *size);
	int (*connect)(struct socket *so, struct sockaddr *to, socklen_t size);
	int (*shutdown)(struct socket *so, int how);
	void (*close)(struct socket *so);
	int (*set_non_blocking)(struct socket *so, int on);
	int (*set_upcall)(struct socket *so,
			  void (*upcall)(struct socket *so, void *arg,
					 int flags),
			  void *arg);
	int (*get_events)(struct socket *so);
	void (*register_address)(void *id);
	void (*deregister_address)(void *id);
	void (*conninput)(void *id, const void *packet, size_t bytes,
			  uint8_t ecn);
	void (*handle_timers)(uint32_t elapsed_ms);
};

/*
 * Loads and starts the library, unless it is loaded already; it stays loaded
 * until the process ends.  @output: sends a packet of SCTP to the address `id`,
 * and returns 0; the packet stays the library's.  Returns the calls, which are
 * static.  NULL: the library cannot be used, and *why is a clause that gives
 * the reason, without a full stop, valid until the next call.
 */
const struct usrsctp_calls *
usrsctp_load(int (*output)(void *id, void *packet, size_t bytes, uint8_t tos,
			   uint8_t set_df),
	     const char **why);
/*
 * Called in a child of fork: the next usrsctp_load loads the library anew, or
 * fails if the program itself uses the library.  Until that load, the child
 * calls no function of the library.  Even after init_nothreads the library has
 * a thread, which visits all associations when an address was deregistered.  A
 * child has no such thread, but may inherit the locks that the thread held at
 * the fork; a call of the library would wait for these locks forever.
 */
void usrsctp_forget(void);

#endif
