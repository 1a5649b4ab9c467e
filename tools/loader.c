/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader.h"

#include "vendor.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The libraries.  Each comes after the libraries that it needs. */
static const char *const libraries[] = {
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

/* Is @item the first word of variable @name, as under another `adverb run`? */
static bool is_first(const char *name, const char *item)
{
	const char *list = secure_getenv(name);
	size_t len = strlen(item);

	return list && strncmp(list, item, len) == 0 &&
	       (!list[len] || strchr(":;", list[len]));
}

/* Puts @item behind the list in variable @name, or before it. */
static void add_item(const char *name, const char *item, bool first)
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
 * Adds @name behind the user's own preloaded libraries: these must see the
 * program's calls before adverb does, and AddressSanitizer's library must come
 * first.
 */
static void preload_library(const char *name)
{
	const char *old = secure_getenv("LD_PRELOAD");

	if (!old || !has_word(old, ": ", name))
		add_item("LD_PRELOAD", name, false);
}

/* Preloads one of the libraries, unless it cannot be read. */
static void preload_frontend(const struct launch *l, const char *library)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", l->libdir, library);
	if (access(path, R_OK))
		return;
	/* a space ends a name in LD_PRELOAD, not in LD_LIBRARY_PATH */
	preload_library(strchr(l->libdir, ' ') ? library : path);
}

/* Can the loader load the library @name?  Tries it in this process. */
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

/* Adds the shim if the loader can load it: otherwise every program would print
 * an error. */
static void preload_shim(const struct launch *l)
{
	char name[PATH_MAX];
	const char *why;

	if (loader_shim(l->libdir, name, &why))
		/* a space ends a name in LD_PRELOAD, not in LD_LIBRARY_PATH */
		preload_library(strchr(l->libdir, ' ') ? LOADER_SHIM : name);
	else if (l->insists)
		fprintf(stderr, "adverb: --shim has no effect: %s.\n", why);
}

/*
 * Allows a preloaded library to precede AddressSanitizer's.  Otherwise gcc's
 * AddressSanitizer would end the program.  The variable is set for every
 * program, because a child of the program may be built with AddressSanitizer.
 */
static void allow_preload(void)
{
	static const char option[] = "verify_asan_link_order=";
	const char *old = secure_getenv("ASAN_OPTIONS");

	if (!old || !strstr(old, option))
		add_item("ASAN_OPTIONS", "verify_asan_link_order=0", false);
}

/* Adds the vendors' folders behind the user's own folders, which may hold the
 * vendors' own libraries. */
static void add_vendors(const struct launch *l)
{
	static struct vendor all[VENDOR_MAX];
	int count = vendor_list(l->libdir, all);

	for (int i = 0; i < count; i++) {
		const char *old = secure_getenv("LD_LIBRARY_PATH");

		if (vendor_is_installed(&all[i], &l->facts, l->origin) ||
		    (old && has_word(old, ":;", all[i].folder)))
			continue;
		add_item("LD_LIBRARY_PATH", all[i].folder, false);
	}
}

/* Is this file missing in @libdir, unreadable, or on a file system that is
 * mounted with the option noexec?  If so, @why says which. */
static bool lacks_file(const char *libdir, const char *name,
		       char why[LOADER_WHY])
{
	char path[PATH_MAX + 32];
	struct statvfs system;

	snprintf(path, sizeof(path), "%s/%s", libdir, name);
	if (access(path, R_OK))
		snprintf(why, LOADER_WHY,
			 "%s cannot be read (%s); build or install adverb "
			 "completely",
			 path, strerror(errno));
	else if (!statvfs(path, &system) && system.f_flag & ST_NOEXEC)
		snprintf(
			why, LOADER_WHY,
			"%s cannot be loaded, since its file system is mounted "
			"with the option noexec; move adverb to another file "
			"system",
			path);
	else
		return false;
	return true;
}

bool loader_lacks_library(const char *libdir, char why[LOADER_WHY])
{
	for (size_t i = 0; i < COUNT(libraries); i++)
		if (lacks_file(libdir, libraries[i], why))
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
		add_item("LD_LIBRARY_PATH", l->libdir, true);
	for (size_t i = 0; l->preload && i < COUNT(libraries); i++)
		preload_frontend(l, libraries[i]);
	if (l->shim)
		preload_shim(l);
	if (l->shim || l->preload)
		allow_preload();
}
