/* SPDX-License-Identifier: BSD-2-Clause */
#include "vendor.h"

#include "ldcache.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the library in v->folder; false: there is none. */
static bool read_folder(struct vendor *v)
{
	DIR *dir = opendir(v->folder);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		found = strncmp(e->d_name, "lib", 3) == 0 &&
			strstr(e->d_name, ".so.") &&
			isdigit((unsigned char)e->d_name[len - 1]) &&
			len < sizeof(v->library);
		if (found)
			memcpy(v->library, e->d_name, len + 1);
	}
	if (dir)
		closedir(dir);
	return found;
}

int vendor_list(const char *libdir, struct vendor out[VENDOR_MAX])
{
	char top[PATH_MAX];
	struct dirent **names;
	int count = 0, n = -1;

	if (snprintf(top, sizeof(top), "%s/vendor", libdir) < PATH_MAX)
		n = scandir(top, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		struct vendor *v = &out[count];

		if (names[i]->d_name[0] != '.' && count < VENDOR_MAX &&
		    snprintf(v->folder, PATH_MAX, "%s/%s", top,
			     names[i]->d_name) < PATH_MAX)
			count += read_folder(v);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return count;
}

/* Returns the rest of @folder behind $ORIGIN or ${ORIGIN}; NULL: @folder begins
 * with neither.  As glibc's loader does, takes $ORIGINAL for another word. */
static const char *behind_origin(const char *folder)
{
	static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);
		unsigned char next;

		if (strncmp(folder, words[i], len) != 0)
			continue;
		next = (unsigned char)folder[len];
		if (words[i][len - 1] == '}' || (!isalnum(next) && next != '_'))
			return folder + len;
	}
	return NULL;
}

/* Is the library in a folder of the program's own search path? */
static bool is_beside(const char *library, const char *search,
		      const char *origin)
{
	bool found = false;

	while (*search && !found) {
		int len = (int)strcspn(search, ":");
		const char *rest = behind_origin(search);
		char path[3 * PATH_MAX];

		if (rest)
			snprintf(path, sizeof(path), "%s%.*s/%s", origin,
				 len - (int)(rest - search), rest, library);
		else
			snprintf(path, sizeof(path), "%.*s/%s", len, search,
				 library);
		found = len && access(path, R_OK) == 0;
		search += len;
		search += *search == ':';
	}
	return found;
}

bool vendor_is_installed(const struct vendor *v,
			 const struct binary_facts *facts, const char *origin)
{
	size_t len = strlen(v->folder);
	char path[PATH_MAX];

	if (facts && is_beside(v->library, facts->search, origin))
		return true;
	/* If this `adverb run` was started by another one, LD_LIBRARY_PATH may
	 * name v->folder, and ldcache_find then finds the library there. */
	return ldcache_find(LDCACHE_FILE, v->library, path) &&
	       !(strncmp(path, v->folder, len) == 0 && path[len] == '/');
}
