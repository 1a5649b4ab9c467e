/* SPDX-License-Identifier: BSD-2-Clause */
/* adverb's declarations of libusrsctp agree with the library's own header. */
#include "test.h"

#include "wire/usrsctp.h"

static int send_nothing(void *id, void *packet, size_t bytes, uint8_t tos,
			uint8_t set_df)
{
	return 0;
}

static void the_library_has_each_function(void **state)
{
	const struct usrsctp_calls *calls;
	const char *why = NULL;

	calls = usrsctp_load(send_nothing, &why);
	if (!calls && strstr(why, "libusrsctp2"))
		SKIP_FOR("libusrsctp2 is not installed");
	assert_non_null(calls);
	assert_ptr_equal(usrsctp_load(send_nothing, &why), calls);
}

#ifdef HAS_USRSCTP
#include <usrsctp.h>

#define SAME(ours, theirs)	    assert_int_equal(ours, theirs)
#define SAME_CALL(member, function) ((void)sizeof(c.member = (function)))
#define SAME_MEMBER(ours, member, theirs, other)                               \
	assert_int_equal(offsetof(struct ours, member),                        \
			 offsetof(struct theirs, other));                      \
	assert_int_equal(sizeof(((struct ours *)0)->member),                   \
			 sizeof(((struct theirs *)0)->other))

static void numbers_are_the_librarys(void **state)
{
	SAME(USRSCTP_AF_CONN, AF_CONN);
	SAME(USRSCTP_NOTIFICATION, MSG_NOTIFICATION);
	SAME(USRSCTP_UNORDERED, SCTP_UNORDERED);
	SAME(USRSCTP_RTOINFO, SCTP_RTOINFO);
	SAME(USRSCTP_INITMSG, SCTP_INITMSG);
	SAME(USRSCTP_NODELAY, SCTP_NODELAY);
	SAME(USRSCTP_ADAPTATION_LAYER, SCTP_ADAPTATION_LAYER);
	SAME(USRSCTP_PEER_ADDR_PARAMS, SCTP_PEER_ADDR_PARAMS);
	SAME(USRSCTP_DELAYED_SACK, SCTP_DELAYED_SACK);
	SAME(USRSCTP_EVENT, SCTP_EVENT);
	SAME(USRSCTP_RECVRCVINFO, SCTP_RECVRCVINFO);
	SAME(USRSCTP_STATUS, SCTP_STATUS);
	SAME(USRSCTP_HEARTBEAT, SPP_HB_ENABLE);
	SAME(USRSCTP_FIXED_MTU, SPP_PMTUD_DISABLE);
	SAME(USRSCTP_ASSOC_CHANGE, SCTP_ASSOC_CHANGE);
	SAME(USRSCTP_SHUTDOWN_EVENT, SCTP_SHUTDOWN_EVENT);
	SAME(USRSCTP_ADAPTATION_INDICATION, SCTP_ADAPTATION_INDICATION);
	SAME(USRSCTP_COMM_UP, SCTP_COMM_UP);
	SAME(USRSCTP_COMM_LOST, SCTP_COMM_LOST);
	SAME(USRSCTP_RESTART, SCTP_RESTART);
	SAME(USRSCTP_SHUTDOWN_COMP, SCTP_SHUTDOWN_COMP);
	SAME(USRSCTP_CANT_START, SCTP_CANT_STR_ASSOC);
	SAME(USRSCTP_WITH_SNDINFO, SCTP_SENDV_SNDINFO);
}

static void structures_are_the_librarys(void **state)
{
	SAME(sizeof(struct usrsctp_address), sizeof(struct sockaddr_conn));
	SAME_MEMBER(usrsctp_address, port, sockaddr_conn, sconn_port);
	SAME_MEMBER(usrsctp_address, id, sockaddr_conn, sconn_addr);
	SAME(sizeof(union usrsctp_peer) >= sizeof(union sctp_sockstore), 1);
	SAME(sizeof(struct usrsctp_sndinfo), sizeof(struct sctp_sndinfo));
	SAME_MEMBER(usrsctp_sndinfo, flags, sctp_sndinfo, snd_flags);
	SAME_MEMBER(usrsctp_sndinfo, ppid, sctp_sndinfo, snd_ppid);
	SAME(sizeof(struct usrsctp_rcvinfo), sizeof(struct sctp_rcvinfo));
	SAME_MEMBER(usrsctp_rcvinfo, ppid, sctp_rcvinfo, rcv_ppid);
	SAME(sizeof(struct usrsctp_rtoinfo), sizeof(struct sctp_rtoinfo));
	SAME_MEMBER(usrsctp_rtoinfo, min_ms, sctp_rtoinfo, srto_min);
	SAME_MEMBER(usrsctp_rtoinfo, max_ms, sctp_rtoinfo, srto_max);
	SAME(sizeof(struct usrsctp_initmsg), sizeof(struct sctp_initmsg));
	SAME_MEMBER(usrsctp_initmsg, streams_in, sctp_initmsg,
		    sinit_max_instreams);
	SAME(sizeof(struct usrsctp_paddrparams),
	     sizeof(struct sctp_paddrparams));
	SAME_MEMBER(usrsctp_paddrparams, heartbeat_ms, sctp_paddrparams,
		    spp_hbinterval);
	SAME_MEMBER(usrsctp_paddrparams, path_mtu, sctp_paddrparams,
		    spp_pathmtu);
	SAME_MEMBER(usrsctp_paddrparams, flags, sctp_paddrparams, spp_flags);
	SAME(sizeof(struct usrsctp_sack_info), sizeof(struct sctp_sack_info));
	SAME_MEMBER(usrsctp_sack_info, delay_ms, sctp_sack_info, sack_delay);
	SAME(sizeof(struct usrsctp_event), sizeof(struct sctp_event));
	SAME_MEMBER(usrsctp_event, type, sctp_event, se_type);
	SAME_MEMBER(usrsctp_event, is_on, sctp_event, se_on);
	SAME_MEMBER(usrsctp_assoc_change, state, sctp_assoc_change, sac_state);
	SAME_MEMBER(usrsctp_assoc_change, error, sctp_assoc_change, sac_error);
	SAME_MEMBER(usrsctp_adaptation, indication, sctp_adaptation_event,
		    sai_adaptation_ind);
	SAME(sizeof(struct usrsctp_status), sizeof(struct sctp_status));
	SAME_MEMBER(usrsctp_status, unacknowledged, sctp_status,
		    sstat_unackdata);
	SAME_MEMBER(usrsctp_status, pending, sctp_status, sstat_penddata);
}

/* A declaration of another type would not compile.  Nothing is called. */
static void functions_are_the_librarys(void **state)
{
	struct usrsctp_calls c;

	SAME_CALL(init_nothreads, usrsctp_init_nothreads);
	SAME_CALL(setsockopt, usrsctp_setsockopt);
	SAME_CALL(getsockopt, usrsctp_getsockopt);
	SAME_CALL(sendv, usrsctp_sendv);
	SAME_CALL(recvv, usrsctp_recvv);
	SAME_CALL(bind, usrsctp_bind);
	SAME_CALL(listen, usrsctp_listen);
	SAME_CALL(accept, usrsctp_accept);
	SAME_CALL(connect, usrsctp_connect);
	SAME_CALL(shutdown, usrsctp_shutdown);
	SAME_CALL(close, usrsctp_close);
	SAME_CALL(set_non_blocking, usrsctp_set_non_blocking);
	SAME_CALL(set_upcall, usrsctp_set_upcall);
	SAME_CALL(get_events, usrsctp_get_events);
	SAME_CALL(register_address, usrsctp_register_address);
	SAME_CALL(deregister_address, usrsctp_deregister_address);
	SAME_CALL(conninput, usrsctp_conninput);
	SAME_CALL(handle_timers, usrsctp_handle_timers);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_has_each_function),
#ifdef HAS_USRSCTP
		cmocka_unit_test(numbers_are_the_librarys),
		cmocka_unit_test(structures_are_the_librarys),
		cmocka_unit_test(functions_are_the_librarys),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
