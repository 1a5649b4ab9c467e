/* SPDX-License-Identifier: BSD-2-Clause */
#include "binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* A file that is open.  It is read, not mapped: another process may shorten the
 * file meanwhile, and an access behind its end would be SIGBUS. */
struct elf_image {
	int fd;
	Elf64_Ehdr head;
};

/* Reads up to @size bytes at this offset.  Returns their number, which is less
 * than @size if the file ends before, or if an error comes after the first
 * bytes; 0 if the offset is at the end of the file or behind it; or -errno if
 * the first read fails. */
static ssize_t read_at(const struct elf_image *im, size_t offset, void *to,
		       size_t size)
{
	size_t have = 0;
	ssize_t n = 1;

	while (have < size && n > 0) {
		n = pread(im->fd, (char *)to + have, size - have,
			  (off_t)(offset + have));
		have += n > 0 ? (size_t)n : 0;
	}
	return n < 0 && !have ? -errno : (ssize_t)have;
}

static bool has_bytes(const struct elf_image *im, size_t offset, void *to,
		      size_t size)
{
	return read_at(im, offset, to, size) == (ssize_t)size;
}

/* Reads the string at this offset, or its first @size - 1 bytes.  Stores "" if
 * the offset is not in the file, or the file ends before the string does. */
static void read_text(const struct elf_image *im, size_t offset, char *text,
		      size_t size)
{
	ssize_t n = read_at(im, offset, text, size - 1);
	size_t have = n > 0 ? (size_t)n : 0;

	text[have] = '\0';
	if (have < size - 1 && strlen(text) == have)
		text[0] = '\0';
}

static bool read_segment(const struct elf_image *im, size_t i, Elf64_Phdr *ph)
{
	return has_bytes(im, im->head.e_phoff + i * sizeof(*ph), ph,
			 sizeof(*ph));
}

static bool read_entry(const struct elf_image *im, const Elf64_Phdr *dynamic,
		       size_t i, Elf64_Dyn *dyn)
{
	return i < dynamic->p_filesz / sizeof(*dyn) &&
	       has_bytes(im, dynamic->p_offset + i * sizeof(*dyn), dyn,
			 sizeof(*dyn)) &&
	       dyn->d_tag != DT_NULL;
}

/* Returns the offset in the file of the byte that is loaded at @address; 0: no
 * segment has this byte, or the segments cannot be read. */
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
	/* offsets of the texts in the string table */
	size_t rpath = 0, runpath = 0;
	bool has_rpath = false, has_runpath = false;
	size_t strings = 0; /* the string table's offset; 0: none */
	char needed[32] = "";
	Elf64_Dyn dyn;

	for (size_t i = 0; read_entry(im, ph, i, &dyn); i++)
		if (dyn.d_tag == DT_STRTAB)
			strings = find_offset(im, dyn.d_un.d_ptr);
	for (size_t i = 0; read_entry(im, ph, i, &dyn); i++) {
		if (dyn.d_tag == DT_RUNPATH) {
			runpath = dyn.d_un.d_val;
			has_runpath = true;
		} else if (dyn.d_tag == DT_RPATH) {
			rpath = dyn.d_un.d_val;
			has_rpath = true;
		} else if (dyn.d_tag == DT_NEEDED && strings) {
			read_text(im, strings + dyn.d_un.d_val, needed,
				  sizeof(needed));
			facts->old_asan |= needs_old_asan(needed);
		}
	}
	facts->rpath = has_rpath && !has_runpath;
	if (strings && (has_rpath || has_runpath))
		read_text(im, strings + (has_runpath ? runpath : rpath),
			  facts->search, sizeof(facts->search));
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
			char loader[PATH_MAX];

			read_text(im, ph.p_offset, loader, sizeof(loader));
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
	char text[2 * PATH_MAX];
	ssize_t n = read_at(im, 0, text, sizeof(text));
	size_t size = n > 0 ? (size_t)n : 0, i = 2, len = 0;

	facts->kind = BINARY_SCRIPT;
	if (size < 2 || memcmp(text, "#!", 2) != 0)
		return;
	while (i < size && (text[i] == ' ' || text[i] == '\t'))
		i++;
	while (i + len < size && text[i + len] && len < PATH_MAX - 1 &&
	       !strchr(" \t\n", text[i + len]))
		len++;
	memcpy(facts->interpreter, text + i, len);
	facts->interpreter[len] = '\0';
}

/* Returns 0, or -errno if the file cannot be read. */
static int read_image(struct elf_image *im, struct binary_facts *facts)
{
	const unsigned char *ident = im->head.e_ident;
	ssize_t n = read_at(im, 0, &im->head, sizeof(im->head));

	if (n < 0)
		return (int)n;
	if (n < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0) {
		read_script(im, facts);
		return 0;
	}
	facts->kind = BINARY_FOREIGN;
	if (n < (ssize_t)sizeof(im->head) || ident[EI_CLASS] != ELFCLASS64)
		return 0;
	if (OUR_MACHINE != EM_NONE && im->head.e_machine != OUR_MACHINE)
		return 0;
	if (im->head.e_phentsize == sizeof(Elf64_Phdr))
		read_segments(im, facts);
	return 0;
}

int binary_read(const char *path, struct binary_facts *facts)
{
	/* O_NONBLOCK: otherwise an open of a FIFO waits for a writer */
	struct elf_image im = {
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
	struct stat file;
	int err;

	*facts = (struct binary_facts){.kind = BINARY_SCRIPT};
	if (im.fd < 0)
		return -errno;
	if (fstat(im.fd, &file))
		err = -errno;
	else if (!S_ISREG(file.st_mode))
		err = -EACCES; /* as from execve(2) */
	else
		err = read_image(&im, facts);
	close(im.fd);
	return err;
}
