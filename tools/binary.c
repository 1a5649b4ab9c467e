/* SPDX-License-Identifier: BSD-2-Clause */
#include "binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

struct elf_image {
	const unsigned char *bytes;
	size_t size;
	Elf64_Ehdr head;
};

/* Returns the file's bytes [offset, offset + size); NULL: the file is shorter.
 */
static const void *bytes_at(const struct elf_image *im, size_t offset,
			    size_t size)
{
	if (offset > im->size || size > im->size - offset)
		return NULL;
	return im->bytes + offset;
}

/* Returns the string at this offset; "": the offset is not in the file, or the
 * string has no end there. */
static const char *text_at(const struct elf_image *im, size_t offset)
{
	const char *text = bytes_at(im, offset, 1);

	if (!text || !memchr(text, '\0', im->size - offset))
		return "";
	return text;
}

static bool read_segment(const struct elf_image *im, size_t i, Elf64_Phdr *ph)
{
	const void *p =
		bytes_at(im, im->head.e_phoff + i * sizeof(*ph), sizeof(*ph));

	if (p)
		memcpy(ph, p, sizeof(*ph));
	return p;
}

static bool read_entry(const struct elf_image *im, const Elf64_Phdr *dynamic,
		       size_t i, Elf64_Dyn *dyn)
{
	const void *p;

	if (i >= dynamic->p_filesz / sizeof(*dyn))
		return false;
	p = bytes_at(im, dynamic->p_offset + i * sizeof(*dyn), sizeof(*dyn));
	if (!p)
		return false;
	memcpy(dyn, p, sizeof(*dyn));
	return dyn->d_tag != DT_NULL;
}

/* Returns the offset in the file of the byte that is loaded at @address; 0: no
 * segment has this byte. */
static size_t find_offset(const struct elf_image *im, Elf64_Addr address)
{
	Elf64_Phdr ph;

	for (size_t i = 0; i < im->head.e_phnum; i++) {
		if (!read_segment(im, i, &ph))
			return 0;
		if (ph.p_type == PT_LOAD && address >= ph.p_vaddr &&
		    address - ph.p_vaddr < ph.p_filesz)
			return ph.p_offset + (address - ph.p_vaddr);
	}
	return 0;
}

/* Is this needed library a libasan older than gcc 8's?  Such a libasan has no
 * option verify_asan_link_order. */
static bool needs_old_asan(const char *needed)
{
	static const char name[] = "libasan.so.";
	size_t len = sizeof(name) - 1;

	return strncmp(needed, name, len) == 0 && needed[len] >= '0' &&
	       needed[len] <= '4' && !needed[len + 1];
}

static void read_dynamic(const struct elf_image *im, const Elf64_Phdr *ph,
			 struct binary_facts *facts)
{
	const char *rpath = NULL, *runpath = NULL;
	size_t strings = 0; /* the string table's offset; 0: none */
	Elf64_Dyn dyn;

	for (size_t i = 0; read_entry(im, ph, i, &dyn); i++)
		if (dyn.d_tag == DT_STRTAB)
			strings = find_offset(im, dyn.d_un.d_ptr);
	for (size_t i = 0; read_entry(im, ph, i, &dyn); i++) {
		const char *text = "";

		if (strings)
			text = text_at(im, strings + dyn.d_un.d_val);
		if (dyn.d_tag == DT_RUNPATH)
			runpath = text;
		else if (dyn.d_tag == DT_RPATH)
			rpath = text;
		else if (dyn.d_tag == DT_NEEDED)
			facts->old_asan |= needs_old_asan(text);
	}
	facts->rpath = rpath && !runpath;
	if (!runpath)
		runpath = rpath ? rpath : "";
	snprintf(facts->search, sizeof(facts->search), "%s", runpath);
}

static void read_segments(const struct elf_image *im,
			  struct binary_facts *facts)
{
	Elf64_Phdr ph;

	facts->kind = BINARY_STATIC;
	for (size_t i = 0; i < im->head.e_phnum; i++) {
		if (!read_segment(im, i, &ph))
			return;
		if (ph.p_type == PT_INTERP) {
			const char *loader = text_at(im, ph.p_offset);

			facts->kind = BINARY_DYNAMIC;
			facts->musl = strstr(loader, "/ld-musl-");
		}
		if (ph.p_type == PT_DYNAMIC)
			read_dynamic(im, &ph, facts);
	}
}

/* Reads the interpreter's path in the first line of a script, as execve(2)
 * does: the path follows "#!" and blanks, and ends at a blank or at the end of
 * the line. */
static void read_script(const struct elf_image *im, struct binary_facts *facts)
{
	const char *text = (const char *)im->bytes;
	size_t i = 2, len = 0;

	facts->kind = BINARY_SCRIPT;
	if (im->size < 2 || memcmp(text, "#!", 2) != 0)
		return;
	while (i < im->size && (text[i] == ' ' || text[i] == '\t'))
		i++;
	while (i + len < im->size && text[i + len] && len < PATH_MAX - 1 &&
	       !strchr(" \t\n", text[i + len]))
		len++;
	memcpy(facts->interpreter, text + i, len);
	facts->interpreter[len] = '\0';
}

static void read_image(struct elf_image *im, struct binary_facts *facts)
{
	const void *p = bytes_at(im, 0, sizeof(im->head));

	if (im->size < EI_NIDENT || memcmp(im->bytes, ELFMAG, SELFMAG) != 0) {
		read_script(im, facts);
		return;
	}
	facts->kind = BINARY_FOREIGN;
	if (!p || im->bytes[EI_CLASS] != ELFCLASS64)
		return;
	memcpy(&im->head, p, sizeof(im->head));
	if (OUR_MACHINE != EM_NONE && im->head.e_machine != OUR_MACHINE)
		return;
	if (im->head.e_phentsize == sizeof(Elf64_Phdr))
		read_segments(im, facts);
}

int binary_read(const char *path, struct binary_facts *facts)
{
	struct elf_image im = {.bytes = NULL};
	struct stat st;
	void *map;
	int err = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*facts = (struct binary_facts){.kind = BINARY_SCRIPT};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		err = -errno;
		goto close_fd;
	}
	if (st.st_size <= 0)
		goto close_fd;
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
