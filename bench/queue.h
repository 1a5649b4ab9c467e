/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue: opens the first device, and creates and connects RC queue pairs, for
 * programs of bench/ that measure verbs.  The queue pairs use the device's GID
 * at index 1, which is a RoCEv2 GID (device/netdev.h).  Each function ends the
 * program when a call fails.
 */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_RIGHTS                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The device, opened, and its GID. */
struct queue_device {
	struct ibv_context *context;
	union ibv_gid gid;
};

/* Unless @good, prints @what and the text of errno, and ends the program. */
void queue_check(bool good, const char *what);
/* Does the work of queue_check for the result of a call that returns an errno
 * value, or 0, and sets no errno. */
void queue_check_result(int err, const char *what);
/* Prints @sentence and ends the program. */
void queue_die(const char *sentence) __attribute__((noreturn));
/* Unless @good, calls queue_die. */
void queue_require(bool good, const char *sentence);
/* Opens the first device. */
struct queue_device queue_open(void);
/* Creates a QP in RESET for @depth requests and @depth receives, each of one
 * element. */
struct ibv_qp *queue_create(struct ibv_pd *pd, struct ibv_cq *cq,
			    uint32_t depth);
/* Connects a QP in RESET to the QP @qpn of the same device: the QP enters RTS.
 */
void queue_connect(const struct queue_device *d, struct ibv_qp *qp,
		   uint32_t qpn);

#endif
