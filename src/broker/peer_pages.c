/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/peer_pages.h"

#include "broker/shared_page.h"
#include "broker/steer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct peer_pages {
	/* the mapped page of each class; NULL: it is not known */
	const void *page[STEER_CLASS_MAX + 1];
	/* The page before page[], still mapped, which the caller may have;
	 * NULL: none.  While there is one, page[] is not replaced. */
	const void *old[STEER_CLASS_MAX + 1];
	/* the inode of the page */
	ino_t inode[STEER_CLASS_MAX + 1];
	/* a question about the class is open */
	bool asked[STEER_CLASS_MAX + 1];
	/* the last answer brought no page; peer_pages_find reports that once */
	bool none[STEER_CLASS_MAX + 1];
};

struct peer_pages *peer_pages_new(void)
{
	return calloc(1, sizeof(struct peer_pages));
}

void peer_pages_free(struct peer_pages *p)
{
	for (uint32_t i = 0; p && i <= STEER_CLASS_MAX; i++) {
		shared_page_unmap(p->page[i]);
		shared_page_unmap(p->old[i]);
	}
	free(p);
}

bool peer_pages_find(struct peer_pages *p, uint32_t class, const void **page)
{
	const void *had = *page, *known = p->page[class];
	bool none = p->none[class] && !had;

	p->none[class] = false;
	if (known && known == had) {
		shared_page_unmap(p->old[class]);
		p->old[class] = NULL;
		return false;
	}
	if (known)
		*page = known;
	return known || none;
}

bool peer_pages_is_due(const struct peer_pages *p, uint32_t class)
{
	return !p->asked[class];
}

void peer_pages_asked(struct peer_pages *p, uint32_t class)
{
	p->asked[class] = true;
}

/* Maps the page at fd if the class had no page or another one. */
static void replace_page(struct peer_pages *p, uint32_t class, int fd)
{
	const void *page;
	struct stat s;

	if (fstat(fd, &s) || (p->page[class] && s.st_ino == p->inode[class]))
		return;
	page = shared_page_map(fd, PROT_READ);
	if (!page)
		return;
	p->old[class] = p->page[class];
	p->page[class] = page;
	p->inode[class] = s.st_ino;
}

void peer_pages_take(struct peer_pages *p, uint32_t class, int fd)
{
	if (!p || class > STEER_CLASS_MAX || !p->asked[class])
		return;
	p->asked[class] = false;
	if (fd >= 0 && !p->old[class])
		replace_page(p, class, fd);
	p->none[class] = !p->page[class];
}

void peer_pages_forget(struct peer_pages *p)
{
	if (p)
		memset(p->asked, 0, sizeof(p->asked));
}
