/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader.h"

#include "vendor.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order of need. */
static const char *const faces[] = {
	"libibverbs.so.1",
	"librdmacm.so.1",
	"libibumad.so.3",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Is @item one of the words of @list? */
static bool has_word(const char *list, const char *separators, const char *item)
{
	while (*list) {
		size_t len = strcspn(list, separators);

		if (len == strlen(item) && strncmp(list, item, len) == 0)
			return true;
		list += len;
		list += *list != '\0';
	}
	return false;
}

/* Under another `adverb run` it is. */
static bool is_first(const char *name, const char *item)
{
	const char *list = secure_getenv(name);
	size_t len = strlen(item);

	return list && strncmp(list, item, len) == 0 &&
	       (!list[len] || strchr(":;", list[len]));
}

/* Puts @item behind the list in variable @name, or before it. */
static void add(const char *name, const char *item, bool first)
{
	const char *old = secure_getenv(name);
	char *text;

	if (!old || !*old) {
		setenv(name, item, 1);
		return;
	}
	if (asprintf(&text, "%s:%s", first ? item : old, first ? old : item) <
	    0)
		abort();
	setenv(name, text, 1);
	free(text);
}

/*
 * Behind what the user preloads: that is to see the program's calls before we
 * do, and AddressSanitizer's library has to be the first.
 */
static void preload(const char *name)
{
	const char *old = secure_getenv("LD_PRELOAD");

	if (!old || !has_word(old, ": ", name))
		add("LD_PRELOAD", name, false);
}

static void preload_face(const struct launch *l, const char *library)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", l->libdir, library);
	if (access(path, R_OK))
		return;
	/* see preload_shim */
	preload(strchr(l->libdir, ' ') ? library : path);
}

/* What the loader makes of a name in LD_PRELOAD, but in this process. */
static bool can_load(const char *name)
{
	void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

	if (handle)
		dlclose(handle);
	return handle;
}

bool loader_shim(const char *libdir, char *name, const char **why)
{
	int n = snprintf(name, PATH_MAX, "%s/preload/$PLATFORM/%s", libdir,
			 LOADER_SHIM);

	if (n < PATH_MAX && can_load(name))
		return true;
	n = snprintf(name, PATH_MAX, "%s/%s", libdir, LOADER_SHIM);
	if (n < PATH_MAX && can_load(name))
		return true;
	*why = n < PATH_MAX ? dlerror() : strerror(ENAMETOOLONG);
	return false;
}

/* One that cannot be loaded is not named: every program would complain. */
static void preload_shim(const struct launch *l)
{
	char name[PATH_MAX];
	const char *why;

	if (loader_shim(l->libdir, name, &why))
		/* a space ends a name in this list, not in LD_LIBRARY_PATH */
		preload(strchr(l->libdir, ' ') ? LOADER_SHIM : name);
	else if (l->insists)
		fprintf(stderr, "adverb: --shim has no effect: %s.\n", why);
}

/*
 * AddressSanitizer's library ends a program in which another comes first, as a
 * preloaded one does; gcc links it so.  A child may be such a program.
 */
static void allow_preload(void)
{
	static const char option[] = "verify_asan_link_order=";
	const char *old = secure_getenv("ASAN_OPTIONS");

	if (!old || !strstr(old, option))
		add("ASAN_OPTIONS", "verify_asan_link_order=0", false);
}

/* Behind the user's own folders: one of those may have them too. */
static void add_vendors(const struct launch *l)
{
	static struct vendor all[VENDOR_MAX];
	int count = vendor_list(l->libdir, all);

	for (int i = 0; i < count; i++) {
		const char *old = secure_getenv("LD_LIBRARY_PATH");

		if (vendor_is_installed(&all[i], &l->facts, l->origin) ||
		    (old && has_word(old, ":;", all[i].folder)))
			continue;
		add("LD_LIBRARY_PATH", all[i].folder, false);
	}
}

static bool lacks_file(const char *libdir, const char *name,
		       char why[LOADER_WHY])
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", libdir, name);
	if (access(path, R_OK) == 0)
		return false;
	snprintf(why, LOADER_WHY,
		 "%s cannot be read (%s); build or install adverb completely",
		 path, strerror(errno));
	return true;
}

bool loader_lacks_face(const char *libdir, char why[LOADER_WHY])
{
	for (size_t i = 0; i < COUNT(faces); i++)
		if (lacks_file(libdir, faces[i], why))
			return true;
	return false;
}

bool loader_lacks_shim(const char *libdir, char why[LOADER_WHY])
{
	return lacks_file(libdir, LOADER_SHIM, why);
}

void loader_set(const struct launch *l)
{
	add_vendors(l);
	if (!is_first("LD_LIBRARY_PATH", l->libdir))
		add("LD_LIBRARY_PATH", l->libdir, true);
	for (size_t i = 0; l->preload && i < COUNT(faces); i++)
		preload_face(l, faces[i]);
	if (l->shim)
		preload_shim(l);
	if (l->shim || l->preload)
		allow_preload();
}
