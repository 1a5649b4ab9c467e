/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/counters.h"

#include "hca/hca.h"

#define WORD(field)                                                            \
	(uint8_t)(offsetof(struct engine_counters, field) / sizeof(uint64_t))
#define NONE UINT8_MAX
#define ONE(name, field)                                                       \
	{                                                                      \
		name, {WORD(field), NONE, NONE}, 1                             \
	}
#define TWO(name, field, too)                                                  \
	{                                                                      \
		name, {WORD(field), WORD(too), NONE}, 1                        \
	}
#define ZERO(name)                                                             \
	{                                                                      \
		name, {NONE, NONE, NONE}, 0                                    \
	}

/* clang-format off */
const struct counters_file counters_files[COUNTERS_FILES] = {
	/* IBTA 16.1.3.5 counts data in words of 4 bytes. */
	{"counters/port_xmit_data", {WORD(tx_bytes), NONE, NONE}, 4},
	{"counters/port_rcv_data", {WORD(rx_bytes), NONE, NONE}, 4},
	ONE("counters/port_xmit_packets", tx_packets),
	ONE("counters/port_rcv_packets", rx_packets),
	TWO("counters/port_rcv_errors", refused.malformed, refused.bad_icrc),
	TWO("counters/port_rcv_constraint_errors", pkey_violations,
	    refused.wrong_peer),
	ZERO("counters/port_xmit_constraint_errors"),
	ZERO("counters/port_xmit_discards"),
	ZERO("counters/port_xmit_wait"),
	ZERO("counters/port_rcv_remote_physical_errors"),
	ZERO("counters/port_rcv_switch_relay_errors"),
	ZERO("counters/symbol_error"),
	ZERO("counters/link_error_recovery"),
	ZERO("counters/link_downed"),
	ZERO("counters/local_link_integrity_errors"),
	ZERO("counters/excessive_buffer_overrun_errors"),
	ZERO("counters/VL15_dropped"),
	/* Names that mlx5 has. */
	ONE("hw_counters/out_of_sequence", rx_out_of_order),
	ONE("hw_counters/duplicate_request", rx_duplicates),
	ONE("hw_counters/packet_seq_err", naks.seq_rx),
	ONE("hw_counters/rnr_nak_retry_err", naks.rnr_rx),
	ONE("hw_counters/local_ack_timeout_err", timeouts),
	ONE("hw_counters/rx_icrc_encapsulated", refused.bad_icrc),
	ONE("hw_counters/implied_nak_seq_err", naks.implied),
	TWO("hw_counters/out_of_buffer", naks.rnr_tx, rx_no_receive),
	ONE("hw_counters/rx_write_requests", rx_writes),
	ONE("hw_counters/rx_read_requests", rx_reads),
	ONE("hw_counters/rx_atomic_requests", rx_atomics),
	TWO("hw_counters/req_cqe_error", failed, failed_by[HCA_WR_FLUSH_ERR]),
	ONE("hw_counters/req_cqe_flush_error", failed_by[HCA_WR_FLUSH_ERR]),
	ONE("hw_counters/req_transport_retries_exceeded",
	    failed_by[HCA_RETRY_EXC_ERR]),
	ONE("hw_counters/req_rnr_retries_exceeded",
	    failed_by[HCA_RNR_RETRY_EXC_ERR]),
	ONE("hw_counters/req_remote_access_errors",
	    failed_by[HCA_REM_ACCESS_ERR]),
	ONE("hw_counters/req_remote_invalid_request",
	    failed_by[HCA_REM_INV_REQ_ERR]),
	ONE("hw_counters/resp_remote_access_errors", naks.access_tx),
	ONE("hw_counters/np_ecn_marked_roce_packets", rx_ecn),
	/* Names that rxe has. */
	ONE("hw_counters/retry_exceeded_err", failed_by[HCA_RETRY_EXC_ERR]),
	ONE("hw_counters/retry_rnr_exceeded_err",
	    failed_by[HCA_RNR_RETRY_EXC_ERR]),
	{"hw_counters/completer_retry_err",
	 {WORD(timeouts), WORD(naks.seq_rx), WORD(naks.implied)}, 1},
	ONE("hw_counters/sent_pkts", tx_packets),
	ONE("hw_counters/rcvd_pkts", rx_packets),
	ONE("hw_counters/out_of_seq_request", rx_out_of_order),
	ONE("hw_counters/rcvd_rnr_err", naks.rnr_rx),
	ONE("hw_counters/send_rnr_err", naks.rnr_tx),
	ONE("hw_counters/rcvd_seq_err", naks.seq_rx),
	ZERO("hw_counters/link_downed"),
	/* Names that only adverb has. */
	ONE("hw_counters/sent_seq_err", naks.seq_tx),
	ONE("hw_counters/req_remote_errors", naks.fatal_rx),
	ONE("hw_counters/resp_remote_errors", naks.fatal_tx),
	ONE("hw_counters/retransmits", retransmits),
	ONE("hw_counters/rx_bytes", rx_bytes),
	ONE("hw_counters/tx_bytes", tx_bytes),
	ONE("hw_counters/rx_malformed", refused.malformed),
	ONE("hw_counters/rx_unknown_qp", refused.unknown_qp),
	ONE("hw_counters/rx_misdirected", refused.misdirected),
	ONE("hw_counters/rx_wrong_peer", refused.wrong_peer),
	ONE("hw_counters/rx_wrong_psn", rx_wrong_psn),
	ONE("hw_counters/rx_wrong_source", refused.wrong_source),
	ONE("hw_counters/rx_limited", refused.limited),
	ONE("hw_counters/rx_buffered", rx_buffered),
	ONE("hw_counters/pkey_violations", pkey_violations),
	ONE("hw_counters/qkey_violations", qkey_violations),
};
/* clang-format on */

uint64_t counters_value(uint32_t i, const uint64_t words[COUNTERS_WORDS])
{
	const struct counters_file *f = &counters_files[i];
	uint64_t sum = 0;

	for (int k = 0; k < 3; k++)
		if (f->word[k] != NONE)
			sum += words[f->word[k]];
	return f->unit ? sum / f->unit : 0;
}
