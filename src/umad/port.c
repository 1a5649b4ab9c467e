/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that take management datagrams.  No port can be opened, so no handle is
 * valid, and every call with a handle fails with EINVAL.
 */
#include "umad/explain.h"
#include "umad/newer.h"

#include <errno.h>

static int bad_handle(void)
{
	errno = EINVAL;
	return -EINVAL;
}

int umad_open_port(const char *ca_name, int portnum)
{
	return u_no_port("umad_open_port");
}

int umad_open_smi_port(const char *ca_name, int portnum)
{
	return u_no_port("umad_open_smi_port");
}

int umad_close_port(int portid)
{
	return bad_handle();
}

int umad_get_fd(int portid)
{
	return bad_handle();
}

int umad_poll(int portid, int timeout_ms)
{
	return bad_handle();
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
	      int retries)
{
	return bad_handle();
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	return bad_handle();
}

int umad_register(int portid, int mgmt_class, int mgmt_version,
		  uint8_t rmpp_version, long method_mask[16 / sizeof(long)])
{
	return bad_handle();
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version,
		      uint8_t oui[3], long method_mask[16 / sizeof(long)])
{
	return bad_handle();
}

/* As the ABI defines it, this is the only call here that returns a positive
 * errno. */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	return EINVAL;
}

int umad_unregister(int portid, int agentid)
{
	return bad_handle();
}
