/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/peer_pages.h"

#include "broker/shared_page.h"
#include "broker/steer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct peer_pages {
	/* the mapped page of each class; NULL: it is not known */
	const void *page[STEER_CLASS_MAX + 1];
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
	for (uint32_t i = 0; p && i <= STEER_CLASS_MAX; i++)
		shared_page_unmap(p->page[i]);
	free(p);
}

bool peer_pages_find(struct peer_pages *p, uint32_t class, const void **page)
{
	bool none = p->none[class];

	*page = p->page[class];
	p->none[class] = false;
	return *page || none;
}

bool peer_pages_is_due(const struct peer_pages *p, uint32_t class)
{
	return !p->asked[class];
}

void peer_pages_asked(struct peer_pages *p, uint32_t class)
{
	p->asked[class] = true;
}

void peer_pages_take(struct peer_pages *p, uint32_t class, int fd)
{
	if (!p || class > STEER_CLASS_MAX || !p->asked[class])
		return;
	p->asked[class] = false;
	if (fd >= 0 && !p->page[class])
		p->page[class] = shared_page_map(fd, PROT_READ);
	p->none[class] = !p->page[class];
}

void peer_pages_forget(struct peer_pages *p)
{
	if (p)
		memset(p->asked, 0, sizeof(p->asked));
}
