/* SPDX-License-Identifier: BSD-2-Clause */
#include "binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OUR_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OUR_MACHINE EM_PPC64
#else
#define OUR_MACHINE EM_NONE
#endif

struct image {
	const unsigned char *bytes;
	size_t size;
};

/* A pointer into the file, or NULL if the range is not within it. */
static const void *at(const struct image *im, size_t offset, size_t size)
{
	if (offset > im->size || size > im->size - offset)
		return NULL;
	return im->bytes + offset;
}

static bool has_rpath(const struct image *im, const Elf64_Phdr *dynamic)
{
	bool rpath = false;
	size_t count = dynamic->p_filesz / sizeof(Elf64_Dyn);

	for (size_t i = 0; i < count; i++) {
		Elf64_Dyn dyn;
		const void *p = at(im, dynamic->p_offset + i * sizeof(dyn),
				   sizeof(dyn));

		if (!p)
			return false;
		memcpy(&dyn, p, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_RUNPATH)
			return false;
		if (dyn.d_tag == DT_RPATH)
			rpath = true;
	}
	return rpath;
}

static void read_segments(const struct image *im, const Elf64_Ehdr *head,
			  struct binary_facts *facts)
{
	facts->kind = BINARY_STATIC;
	for (size_t i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr ph;
		const void *p =
			at(im, head->e_phoff + i * sizeof(ph), sizeof(ph));

		if (!p)
			return;
		memcpy(&ph, p, sizeof(ph));
		if (ph.p_type == PT_INTERP)
			facts->kind = BINARY_DYNAMIC;
		if (ph.p_type == PT_DYNAMIC)
			facts->rpath = has_rpath(im, &ph);
	}
}

static void read_image(const struct image *im, struct binary_facts *facts)
{
	Elf64_Ehdr head;
	const void *p = at(im, 0, sizeof(head));

	facts->kind = BINARY_SCRIPT;
	facts->rpath = false;
	if (im->size < EI_NIDENT || memcmp(im->bytes, ELFMAG, SELFMAG) != 0)
		return;
	facts->kind = BINARY_FOREIGN;
	if (!p || im->bytes[EI_CLASS] != ELFCLASS64)
		return;
	memcpy(&head, p, sizeof(head));
	if (OUR_MACHINE != EM_NONE && head.e_machine != OUR_MACHINE)
		return;
	if (head.e_phentsize == sizeof(Elf64_Phdr))
		read_segments(im, &head, facts);
}

int binary_read(const char *path, struct binary_facts *facts)
{
	struct image im = {NULL, 0};
	struct stat st;
	void *map;
	int err = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		err = -errno;
		goto close_fd;
	}
	if (st.st_size <= 0) {
		read_image(&im, facts);
		goto close_fd;
	}
	im.size = (size_t)st.st_size;
	map = mmap(NULL, im.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		goto close_fd;
	}
	im.bytes = map;
	read_image(&im, facts);
	munmap(map, im.size);
close_fd:
	close(fd);
	return err;
}
