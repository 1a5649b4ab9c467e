/* SPDX-License-Identifier: BSD-2-Clause */
#include "ldcache.h"

#include "binary.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The header of a table (glibc, sysdeps/generic/dl-cache.h), at the beginning
 * of the file or behind a table of the older format.  A row for each library
 * follows. */
static const char magic[] = "glibc-ld.so.cache1.1";

struct head {
	char magic[sizeof(magic) - 1];
	uint32_t count; /* how many rows follow */
	uint32_t unused[6];
};

/* A row of the table.  adverb reads only `library` and `path`. */
struct cache_row {
	int32_t flags;
	uint32_t library, path; /* offsets of strings from the header */
	uint32_t os;
	uint64_t hwcap;
};

_Static_assert(sizeof(struct head) == 48 && sizeof(struct cache_row) == 24,
	       "the cache file has these sizes");

/* The table of a cache file in memory. */
struct table {
	const char *bytes; /* the header, and the file's bytes after it */
	size_t size;	   /* how many bytes are at `bytes` */
	uint32_t count;	   /* how many rows; `bytes` has all of them */
};

/* Returns the string at this offset from the header; "": the file does not have
 * the whole string. */
static const char *text_at(const struct table *t, uint32_t offset)
{
	if (offset >= t->size ||
	    !memchr(t->bytes + offset, '\0', t->size - offset))
		return "";
	return t->bytes + offset;
}

/* Is the file a library for this processor?  A cache may name files that are
 * gone, or that are for 32 bits. */
static bool is_usable(const char *path)
{
	struct binary_facts facts;

	if (binary_read(path, &facts))
		return false;
	return facts.kind != BINARY_FOREIGN && facts.kind != BINARY_SCRIPT;
}

static bool search_table(const struct table *t, const char *library, char *path)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct cache_row row;
		const char *found;
		size_t len;

		memcpy(&row, t->bytes + sizeof(struct head) + i * sizeof(row),
		       sizeof(row));
		if (strcmp(text_at(t, row.library), library) != 0)
			continue;
		found = text_at(t, row.path);
		len = strlen(found);
		if (len < PATH_MAX && is_usable(found)) {
			memcpy(path, found, len + 1);
			return true;
		}
	}
	return false;
}

static bool read_table(const char *bytes, size_t size, struct table *t)
{
	const char *head = memmem(bytes, size, magic, sizeof(magic) - 1);
	struct head h;

	if (!head)
		return false;
	t->bytes = head;
	t->size = size - (size_t)(head - bytes);
	if (t->size < sizeof(h))
		return false;
	memcpy(&h, head, sizeof(h));
	t->count = h.count;
	return t->count <= (t->size - sizeof(h)) / sizeof(struct cache_row);
}

/* Reads a file, which another process may shorten meanwhile.  Returns the bytes
 * that could be read, which the caller frees, and stores their number in *size.
 * NULL: the file is empty or cannot be opened, or there is no memory. */
static char *read_cache(const char *cache, size_t *size)
{
	int fd = open(cache, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes = NULL;
	ssize_t n = 1;

	*size = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		bytes = malloc((size_t)st.st_size);
	while (bytes && n > 0 && *size < (size_t)st.st_size) {
		n = read(fd, bytes + *size, (size_t)st.st_size - *size);
		*size += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return bytes;
}

bool ldcache_read(const char *cache, const char *library, char *path)
{
	size_t size;
	char *bytes = read_cache(cache, &size);
	struct table t;
	bool found = bytes && read_table(bytes, size, &t) &&
		     search_table(&t, library, path);

	free(bytes);
	return found;
}

static bool search_folder(const char *folder, int length, const char *library,
			  char *path)
{
	int n = snprintf(path, PATH_MAX, "%.*s/%s", length, folder, library);

	return n < PATH_MAX && access(path, R_OK) == 0 && is_usable(path);
}

/* Finds @library in LD_LIBRARY_PATH.  An empty name is the working folder
 * (ld.so(8)). */
static bool search_environment(const char *library, char *path)
{
	const char *at = secure_getenv("LD_LIBRARY_PATH");
	bool found = false;

	if (!at || !*at)
		return false;
	for (bool is_last = false; !found && !is_last;) {
		int length = (int)strcspn(at, ":;");

		found = length ? search_folder(at, length, library, path)
			       : search_folder(".", 1, library, path);
		is_last = !at[length];
		at += length + 1;
	}
	return found;
}

/* Finds @library in the folders that dlinfo(3) lists for adverb itself: those
 * of LD_LIBRARY_PATH, those of adverb's DT_RUNPATH if there is one, and the
 * loader's default folders. */
static bool search_folders(const char *library, char *path)
{
	void *self = dlopen(NULL, RTLD_LAZY);
	Dl_serinfo size, *all;
	bool found = false;

	if (!self || dlinfo(self, RTLD_DI_SERINFOSIZE, &size))
		return false;
	all = calloc(1, size.dls_size);
	if (!all || dlinfo(self, RTLD_DI_SERINFOSIZE, all) ||
	    dlinfo(self, RTLD_DI_SERINFO, all)) {
		free(all);
		return false;
	}
	for (unsigned i = 0; i < all->dls_cnt && !found; i++)
		found = search_folder(all->dls_serpath[i].dls_name, PATH_MAX,
				      library, path);
	free(all);
	return found;
}

bool ldcache_find(const char *cache, const char *library, char *path)
{
	return search_environment(library, path) ||
	       ldcache_read(cache, library, path) ||
	       search_folders(library, path);
}
