/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vendor: libraries in place of the libraries of adapters' vendors (src/stubs).
 * Each of their functions fails, or does nothing if it returns nothing.  Each
 * library is in a folder of its own below <libdir>/vendor, as in
 * vendor/mlx5/libmlx5.so.1.
 *
 * Some programs link a vendor's library.  If the system has the vendor's own
 * library, a program loads the vendor's, since the library of src/stubs may
 * lack functions that the program needs.  No lock.
 */
#ifndef TOOLS_VENDOR_H
#define TOOLS_VENDOR_H

#include "binary.h"

enum { VENDOR_MAX = 16 };

/* One of these libraries. */
struct vendor {
	char library[64];      /* "libmlx5.so.1" */
	char folder[PATH_MAX]; /* the folder of the library */
};

/* Lists in @out the libraries below @libdir/vendor, in the order of their
 * folders' names.  Returns their number, at most VENDOR_MAX; 0 if there are
 * none. */
int vendor_list(const char *libdir, struct vendor out[VENDOR_MAX]);

/*
 * Does a program find the vendor's own library?  Returns true if the program's
 * search path leads to a library of this name, or if ldcache_find finds one
 * that is not below v->folder.  @facts are the program's, or NULL if nothing is
 * known of the program; @origin is the program's folder, for $ORIGIN.
 */
bool vendor_is_installed(const struct vendor *v,
			 const struct binary_facts *facts, const char *origin);

#endif
