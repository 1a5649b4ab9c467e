/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/usrsctp.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "util/bits.h"

#define LIBRARY "libusrsctp.so.2"

static struct usrsctp_calls calls;
static void *library;
static bool is_inherited; /* the library's state is that of this process's
			   * parent, from before the fork */

static const struct {
	const char *name;
	void **call;
} symbols[] = {
	{"usrsctp_init_nothreads", (void **)&calls.init_nothreads},
	{"usrsctp_socket", (void **)&calls.socket},
	{"usrsctp_setsockopt", (void **)&calls.setsockopt},
	{"usrsctp_getsockopt", (void **)&calls.getsockopt},
	{"usrsctp_sendv", (void **)&calls.sendv},
	{"usrsctp_recvv", (void **)&calls.recvv},
	{"usrsctp_bind", (void **)&calls.bind},
	{"usrsctp_listen", (void **)&calls.listen},
	{"usrsctp_accept", (void **)&calls.accept},
	{"usrsctp_connect", (void **)&calls.connect},
	{"usrsctp_shutdown", (void **)&calls.shutdown},
	{"usrsctp_close", (void **)&calls.close},
	{"usrsctp_set_non_blocking", (void **)&calls.set_non_blocking},
	{"usrsctp_set_upcall", (void **)&calls.set_upcall},
	{"usrsctp_get_events", (void **)&calls.get_events},
	{"usrsctp_register_address", (void **)&calls.register_address},
	{"usrsctp_deregister_address", (void **)&calls.deregister_address},
	{"usrsctp_conninput", (void **)&calls.conninput},
	{"usrsctp_handle_timers", (void **)&calls.handle_timers},
};

/* Extensions of SCTP that adverb does not need.  Each is code of the library
 * that a packet from an unknown host could reach. */
static const char *const switched_off[] = {
	"usrsctp_sysctl_set_sctp_ecn_enable",
	"usrsctp_sysctl_set_sctp_asconf_enable",
	"usrsctp_sysctl_set_sctp_auth_enable",
	"usrsctp_sysctl_set_sctp_pr_enable",
	"usrsctp_sysctl_set_sctp_reconfig_enable",
	"usrsctp_sysctl_set_sctp_nrsack_enable",
	"usrsctp_sysctl_set_sctp_pktdrop_enable",
};

static void be_silent(const char *format, ...)
{
}

/* Looks up the functions of the library, and stores them in `calls`.  Returns
 * the name of the first function that the library lacks; NULL: the library
 * lacks none. */
static const char *missing_symbol(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(symbols); i++) {
		*symbols[i].call = dlsym(library, symbols[i].name);
		if (!*symbols[i].call)
			return symbols[i].name;
	}
	return NULL;
}

static void switch_off(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(switched_off); i++) {
		int (*set)(uint32_t value);

		*(void **)&set = dlsym(library, switched_off[i]);
		if (set)
			set(0);
	}
}

void usrsctp_forget(void)
{
	is_inherited |= library != NULL;
}

/* Unloads the library with the state that the parent has left, so that it is
 * loaded anew.  False: the program itself uses the library, which stays. */
static bool unload_inherited(void)
{
	void *still;

	if (library)
		dlclose(library);
	library = NULL;
	still = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	if (still)
		dlclose(still);
	is_inherited = still != NULL;
	return !still;
}

const struct usrsctp_calls *
usrsctp_load(int (*output)(void *id, void *packet, size_t bytes, uint8_t tos,
			   uint8_t set_df),
	     const char **why)
{
	static char said[256];
	const char *missing;

	if (is_inherited && !unload_inherited()) {
		*why = LIBRARY " is used by the program itself, and a child of "
			       "fork cannot start it again";
		return NULL;
	}
	if (library)
		return &calls;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(said, sizeof(said),
			 "the library of SCTP cannot be loaded: %s; install "
			 "Debian's package libusrsctp2",
			 dlerror());
		*why = said;
		return NULL;
	}
	missing = missing_symbol();
	if (missing) {
		snprintf(said, sizeof(said),
			 LIBRARY " is of a release that lacks the function %s: "
				 "install release 0.9.5",
			 missing);
		*why = said;
		dlclose(library);
		library = NULL;
		return NULL;
	}
	calls.init_nothreads(0, output, be_silent);
	switch_off();
	return &calls;
}
