/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/session.h"

#include <errno.h>
#include <string.h>

#include "hdr/bytes.h"

/* The properties of each control message, by its function code. */
static const struct {
	bool begins_session; /* the message has the contents of an MPA frame */
	enum mpa_kind kind;
	bool is_rejected, is_enhanced;
	uint8_t enhanced_bytes;
} functions[SESSION_FUNCTIONS] = {
	[SESSION_INITIATE] = {true, MPA_REQUEST},
	[SESSION_ACCEPT] = {true, MPA_REPLY},
	[SESSION_REJECT] = {true, MPA_REPLY, .is_rejected = true},
	[SESSION_ENHANCED_INITIATE] = {true, MPA_REQUEST, .is_enhanced = true,
				       .enhanced_bytes = MPA_ENHANCED},
	[SESSION_ENHANCED_ACCEPT] = {true, MPA_REPLY, .is_enhanced = true,
				     .enhanced_bytes = MPA_ENHANCED},
	[SESSION_ENHANCED_REJECT] = {true, MPA_REPLY, .is_rejected = true,
				     .is_enhanced = true},
};

void session_write_head(uint8_t *p, uint32_t ppid, uint16_t ssn)
{
	bytes_put32(p, ppid);
	bytes_put16(p + 4, ssn);
}

bool session_parse_head(const uint8_t *p, size_t n, uint32_t *ppid,
			uint16_t *ssn)
{
	if (n < SESSION_HEAD)
		return false;
	*ppid = bytes_get32(p);
	*ssn = bytes_get16(p + 4);
	return *ppid == SESSION_SEGMENT || *ppid == SESSION_CONTROL;
}

static enum session_function function_of(const struct mpa_frame *f)
{
	if (f->kind == MPA_REQUEST)
		return f->is_enhanced ? SESSION_ENHANCED_INITIATE
				      : SESSION_INITIATE;
	if (f->is_rejected)
		return f->is_enhanced ? SESSION_ENHANCED_REJECT
				      : SESSION_REJECT;
	return f->is_enhanced ? SESSION_ENHANCED_ACCEPT : SESSION_ACCEPT;
}

int session_parse_control(const uint8_t *p, size_t n, struct mpa_frame *f)
{
	size_t data = n - SESSION_CONTROL_BYTES, enhanced;
	int code;

	if (n < SESSION_CONTROL_BYTES)
		return -EMSGSIZE;
	code = bytes_get16(p + SESSION_HEAD);
	if (code < SESSION_INITIATE || code >= SESSION_FUNCTIONS)
		return -EPROTO;
	enhanced = functions[code].enhanced_bytes;
	if (data > (functions[code].begins_session ? MPA_PRIVATE_MAX : 0) ||
	    data < enhanced)
		return -EMSGSIZE;
	if (!functions[code].begins_session)
		return code;
	p += SESSION_CONTROL_BYTES;
	*f = (struct mpa_frame){
		.kind = functions[code].kind,
		.revision = 2,
		.is_rejected = functions[code].is_rejected,
		.is_enhanced = functions[code].is_enhanced,
		.private_data = p + enhanced,
		.private_bytes = (uint16_t)(data - enhanced),
	};
	if (enhanced)
		mpa_read_enhanced(p, &f->enhanced);
	return code;
}

int session_write_control(uint8_t *p, uint16_t ssn, const struct mpa_frame *f)
{
	enum session_function code = function_of(f);
	size_t enhanced = functions[code].enhanced_bytes;

	if (enhanced + f->private_bytes > MPA_PRIVATE_MAX)
		return -EMSGSIZE;
	session_write_head(p, SESSION_CONTROL, ssn);
	bytes_put16(p + SESSION_HEAD, (uint16_t)code);
	p += SESSION_CONTROL_BYTES;
	if (enhanced)
		mpa_write_enhanced(p, &f->enhanced);
	if (f->private_bytes)
		memcpy(p + enhanced, f->private_data, f->private_bytes);
	return (int)(SESSION_CONTROL_BYTES + enhanced + f->private_bytes);
}

void session_write_terminate(uint8_t *p, uint16_t ssn)
{
	session_write_head(p, SESSION_CONTROL, ssn);
	bytes_put16(p + SESSION_HEAD, SESSION_TERMINATE);
}
