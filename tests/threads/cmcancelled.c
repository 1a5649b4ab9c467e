/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmcancelled: a program cancels (pthread_cancel) a thread that uses librdmacm.
 * The thread ends only in a wait: for an event, or for the program to
 * acknowledge an event.  The thread leaves no lock locked, and leaves open no
 * channel that rdma_migrate_id has made.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"

#define RESOLVE_MS 60000

static const char *call; /* the latest call by CALL or DONE */
static struct rdma_event_channel *channel;
static struct ids {
	struct rdma_cm_id *listener, *active;
} first, second, third;
static atomic_bool is_through;

#define CALL(name, ...) (call = #name, name(__VA_ARGS__))
#define DONE(name, ...) check_need(!CALL(name, __VA_ARGS__), #name)

static void make_ids(struct ids *i)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	channel = CALL(rdma_create_event_channel);
	check_need(channel, call);
	DONE(rdma_create_id, channel, &i->listener, NULL, RDMA_PS_TCP);
	DONE(rdma_bind_addr, i->listener, (struct sockaddr *)&at);
	DONE(rdma_listen, i->listener, 1);
	DONE(rdma_create_id, channel, &i->active, NULL, RDMA_PS_TCP);
	at.sin_port = rdma_get_src_port(i->listener);
	DONE(rdma_resolve_addr, i->active, NULL, (struct sockaddr *)&at,
	     RESOLVE_MS);
}

static void end_ids(struct ids *i)
{
	DONE(rdma_destroy_id, i->active);
	DONE(rdma_destroy_id, i->listener);
	rdma_destroy_event_channel(channel);
}

/* A thread that is cancelled from the start ends where it waits for an event.
 */
static void *make_and_wait(void *arg)
{
	struct rdma_cm_event **event = arg;

	pthread_cancel(pthread_self());
	make_ids(&first);
	end_ids(&first);
	make_ids(&first);
	atomic_store(&is_through, true);
	CALL(rdma_get_cm_event, channel, event);
	return NULL;
}

/* rdma_destroy_id waits until the program acknowledges an event of the id. */
static void *destroy_and_wait(void *unused)
{
	(void)unused;
	atomic_store(&is_through, true);
	rdma_destroy_id(first.active);
	return NULL;
}

static void join_cancelled(pthread_t thread)
{
	void *how;

	pthread_join(thread, &how);
	check_need(how == PTHREAD_CANCELED, "the thread was cancelled");
	check_need(atomic_load(&is_through), call);
}

static struct rdma_cm_event *event;

static void calls_that_do_not_wait_are_not_cancelled(void)
{
	pthread_t thread;

	check_need(!pthread_create(&thread, NULL, make_and_wait, &event),
		   "a thread");
	join_cancelled(thread);
	DONE(rdma_get_cm_event, channel, &event);
}

static void a_thread_is_cancelled_while_it_waits_for_the_program(void)
{
	pthread_t thread;

	atomic_store(&is_through, false);
	check_need(!pthread_create(&thread, NULL, destroy_and_wait, NULL),
		   "a thread");
	while (!atomic_load(&is_through))
		sched_yield();
	pthread_cancel(thread);
	join_cancelled(thread);
	DONE(rdma_ack_cm_event, event);
	DONE(rdma_destroy_id, first.listener);
	rdma_destroy_event_channel(channel);
	make_ids(&second); /* first.active is half destroyed */
	end_ids(&second);
}

static void *migrate_and_wait(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	atomic_store(&is_through, true);
	rdma_migrate_id(third.active, NULL);
	return NULL;
}

static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

/* rdma_migrate_id waits until the program acknowledges an event of the id. */
static void a_cancelled_migration_leaves_no_channel(void)
{
	pthread_t thread;
	int free_before, free_without = lowest_free();

	make_ids(&third);
	DONE(rdma_get_cm_event, channel, &event);
	free_before = lowest_free();
	atomic_store(&is_through, false);
	check_need(!pthread_create(&thread, NULL, migrate_and_wait, NULL),
		   "a thread");
	join_cancelled(thread);
	check_need(lowest_free() == free_before, "no descriptor is left open");
	check_need(third.active->channel == channel, "the id has its channel");
	DONE(rdma_ack_cm_event, event);
	DONE(rdma_migrate_id, third.active, NULL);
	check_need(third.active->channel != channel, "the id has migrated");
	end_ids(&third);
	check_need(lowest_free() == free_without, "the channels are closed");
}

int main(void)
{
	check_run("calls that do not wait are not cancelled",
		  calls_that_do_not_wait_are_not_cancelled);
	check_run("a thread is cancelled while it waits for the program",
		  a_thread_is_cancelled_while_it_waits_for_the_program);
	check_run("a cancelled migration leaves no channel",
		  a_cancelled_migration_leaves_no_channel);
	return check_end();
}
