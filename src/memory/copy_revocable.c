/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/copy_revocable.h"

#include "memory/copy_nofault.h"
#include "util/libc.h"
#include "util/bits.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

#define ALIAS	   4096 /* see is_slow_by_bytes */
#define ALIAS_SLOW 16

/*
 * Each restartable sequence (rseq(2)) compares the word with `ended`, and its
 * last instruction is the store.  After an interrupt, the registers have the
 * addresses and the number of the bytes (`rep movsb`), or of the groups of 8
 * bytes (`rep movsq`), that are not copied yet.  So a restarted sequence copies
 * only what is left.  The kernel moves an interrupted thread to label 4 before
 * it runs a signal handler, even the handler of a fault in the sequence.  So
 * that handler finds the thread at label 4, for which copy_revocable_is_at also
 * returns true.
 *
 * The parameters of `cas` and `add` are (word, value, compare, l, old), with
 * `old` in this process's own memory.  Those of the other sequences are (to,
 * from, bytes, l); `words` has the number of words of 8 bytes in the place of
 * `bytes`.  The sequences use no stack.
 */
__asm__(".macro copy_revocable_sequence name, fetch, store, after=\"\"\n"
	"copy_revocable_\\name:\n"
	"	mov %r8, %r11\n"
	"	mov (%rcx), %r10\n"
	"	mov 8(%rcx), %r8\n"
	"	mov 16(%rcx), %r9\n"
	"	mov %rdx, %rcx\n"
	"1:	lea 10f(%rip), %rax\n"
	"	mov %rax, 8(%r9)\n" /* rseq_cs */
	"2:	cmp %r8, (%r10)\n"
	"	je copy_revocable_ended\n"
	"	\\fetch\n"
	"	\\store\n"
	"3:	\\after\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"	.byte 0x0f, 0xb9, 0x3d\n"
	"	.long 0x53053053\n" /* RSEQ_SIG, which the kernel checks */
	"4:	jmp 1b\n"
	"	.pushsection .data.rel.ro, \"aw\"\n"
	"	.balign 32\n"
	"10:	.long 0, 0\n" /* version, flags */
	"	.quad 2b, 3b - 2b, 4b\n"
	"	.popsection\n"
	".endm\n"
	".pushsection .text\n"
	".p2align 4\n"
	"copy_revocable_first:\n"
	"	.cfi_startproc\n"
	"	copy_revocable_sequence bytes, \"\", \"rep movsb\"\n"
	"	copy_revocable_sequence words, \"\", \"rep movsq\"\n"
	"	copy_revocable_sequence put1, \"movb (%rsi), %al\", \"movb %al, (%rdi)\"\n"
	"	copy_revocable_sequence put2, \"movw (%rsi), %ax\", \"movw %ax, (%rdi)\"\n"
	"	copy_revocable_sequence put4, \"movl (%rsi), %eax\", \"movl %eax, (%rdi)\"\n"
	"	copy_revocable_sequence put8, \"movq (%rsi), %rax\", \"movq %rax, (%rdi)\"\n"
	"	copy_revocable_sequence cas, \"mov %rdx, %rax\", "
	"\"lock cmpxchg %rsi, (%rdi)\", \"mov %rax, (%r11)\"\n"
	"	copy_revocable_sequence add, \"mov %rsi, %rax\", "
	"\"lock xadd %rax, (%rdi)\", \"mov %rax, (%r11)\"\n"
	"copy_revocable_ended:\n"
	"	mov $2, %eax\n"
	"	ret\n"
	"copy_revocable_last:\n"
	"copy_revocable_fault:\n"
	"	mov $1, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".popsection\n");

typedef int sequence(void *to, const void *from, size_t bytes,
		     const struct copy_revocable *l);

sequence copy_revocable_bytes, copy_revocable_words, copy_revocable_put1,
	copy_revocable_put2, copy_revocable_put4, copy_revocable_put8;
int copy_revocable_cas(void *word, uint64_t value, uint64_t compare,
		       const struct copy_revocable *l, uint64_t *old);
int copy_revocable_add(void *word, uint64_t value, uint64_t compare,
		       const struct copy_revocable *l, uint64_t *old);
extern const char copy_revocable_first[], copy_revocable_last[],
	copy_revocable_fault[];

_Static_assert(RSEQ_SIG == 0x53053053, "before each abort");
_Static_assert(offsetof(struct rseq, rseq_cs) == 8, "copy_revocable_sequence");
_Static_assert(offsetof(struct copy_revocable, ended) == 8,
	       "copy_revocable_sequence");
_Static_assert(offsetof(struct copy_revocable, rseq) == 16,
	       "copy_revocable_sequence");
_Static_assert(COPY_REVOCABLE_FAULT == 1 && COPY_REVOCABLE_ENDED == 2,
	       "copy_revocable_sequence");

bool copy_revocable_is_at(uintptr_t ip)
{
	return ip >= (uintptr_t)copy_revocable_first &&
	       ip < (uintptr_t)copy_revocable_last;
}

uintptr_t copy_revocable_fault_at(void)
{
	return (uintptr_t)copy_revocable_fault;
}

static struct rseq *own_rseq(void)
{
	uintptr_t thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	return (struct rseq *)(thread + (uintptr_t)libc_rseq.offset);
}

bool copy_revocable_take(struct copy_revocable *l, const void *word,
			 uint64_t ended)
{
	struct rseq *r = own_rseq();

	/* cpu_id is negative while the struct is not registered with the
	 * kernel. */
	if (!libc_rseq.is_registered || (int32_t)r->cpu_id < 0 ||
	    !copy_nofault_has_strings() || !copy_nofault_is_on())
		return false;
	*l = (struct copy_revocable){word, ended, r};
	return true;
}

static enum copy_revocable_end put_word(const struct copy_revocable *l,
					uint64_t to, const void *from,
					uint64_t bytes)
{
	sequence *by = bytes == 8   ? copy_revocable_put8
		       : bytes == 4 ? copy_revocable_put4
		       : bytes == 2 ? copy_revocable_put2
				    : copy_revocable_put1;

	return (enum copy_revocable_end)by((void *)(uintptr_t)to, from, bytes,
					   l);
}

/* Would `rep movsb` move one byte at a time?  Zen 4 does so if `to` is 1 to 15
 * bytes above `from`, modulo 4096 (memory/copy_nofault.c): it then moves 3.5
 * GB/s, and `rep movsq` moves 24 GB/s. */
static bool is_slow_by_bytes(uint64_t to, uint64_t from)
{
	return (to - from - 1) % ALIAS < ALIAS_SLOW - 1;
}

static enum copy_revocable_end copy_bytes(const struct copy_revocable *l,
					  uint64_t to, uint64_t from,
					  uint64_t bytes)
{
	uint64_t words = is_slow_by_bytes(to, from) ? bytes / 8 : 0;
	uint64_t done = words * 8;
	int end = 0;

	if (words)
		end = copy_revocable_words((void *)(uintptr_t)to,
					   (const void *)(uintptr_t)from, words,
					   l);
	if (!end && done < bytes)
		end = copy_revocable_bytes(
			(void *)(uintptr_t)(to + done),
			(const void *)(uintptr_t)(from + done), bytes - done,
			l);
	return (enum copy_revocable_end)end;
}

static enum copy_revocable_end move_one(const struct copy_revocable *l,
					const struct space_vec *to,
					uint64_t from)
{
	uint64_t tail = to->bytes ? space_tail(to) : 0;
	uint64_t body = to->bytes - tail;
	enum copy_revocable_end end = COPY_REVOCABLE_DONE;

	if (body)
		end = copy_bytes(l, to->va, from, body);
	if (!end && tail)
		end = put_word(l, to->va + body, (const void *)(from + body),
			       tail);
	return end;
}

/* The rest of one side of a move. */
struct copy_side {
	const struct space_vec *v; /* the stretches after the present one */
	uint32_t left;		   /* the number of stretches at v */
	uint64_t va;		   /* address in the present stretch */
	uint64_t rest;		   /* bytes left in the present stretch */
};

static void next_piece(struct copy_side *s)
{
	while (s->left && !s->rest) {
		s->va = s->v->va;
		s->rest = (s->v++)->bytes;
		s->left--;
	}
}

static void advance_side(struct copy_side *s, uint64_t bytes)
{
	s->va += bytes;
	s->rest -= bytes;
	next_piece(s);
}

static struct copy_side side_of(const struct space_vec *v, uint32_t count)
{
	struct copy_side s = {v, count, 0, 0};

	next_piece(&s);
	return s;
}

/* Copies the next `bytes` bytes of a side to one address, with no order between
 * the stores. */
static enum copy_revocable_end gather_pieces(const struct copy_revocable *l,
					     uint64_t to,
					     struct copy_side *from,
					     uint64_t bytes)
{
	enum copy_revocable_end end = COPY_REVOCABLE_DONE;

	while (!end && bytes) {
		uint64_t n = bits_min_u64(bytes, from->rest);

		end = copy_bytes(l, to, from->va, n);
		advance_side(from, n);
		to += n;
		bytes -= n;
	}
	return end;
}

static enum copy_revocable_end move_many(const struct copy_revocable *l,
					 struct copy_side *to,
					 struct copy_side *from)
{
	enum copy_revocable_end end = COPY_REVOCABLE_DONE;
	uint64_t tail = 0, last = 0;

	while (!end && to->rest) {
		struct space_vec v = {to->va, to->rest};
		bool is_last;

		advance_side(to, v.bytes);
		is_last = !to->rest;
		tail = is_last ? space_tail(&v) : 0;
		last = v.va + v.bytes - tail;
		end = gather_pieces(l, v.va, from, v.bytes - tail);
	}
	if (!end && tail) {
		uint8_t bytes[8];

		end = gather_pieces(l, (uintptr_t)bytes, from, tail);
		if (!end)
			end = put_word(l, last, bytes, tail);
	}
	return end;
}

enum copy_revocable_end copy_revocable_move(const struct copy_revocable *l,
					    const struct space_move *m)
{
	struct copy_side to, from;

	if (m->to_count == 1 && m->from_count == 1)
		return move_one(l, m->to, m->from->va);
	to = side_of(m->to, m->to_count);
	from = side_of(m->from, m->from_count);
	return move_many(l, &to, &from);
}

enum copy_revocable_end copy_revocable_atomic(const struct copy_revocable *l,
					      enum space_atomic op, void *word,
					      uint64_t swap_add,
					      uint64_t compare, uint64_t *old)
{
	return (enum copy_revocable_end)(op == SPACE_CAS ? copy_revocable_cas
							 : copy_revocable_add)(
		word, swap_add, compare, l, old);
}

#else

bool copy_revocable_is_at(uintptr_t ip)
{
	return false;
}

uintptr_t copy_revocable_fault_at(void)
{
	return 0;
}

bool copy_revocable_take(struct copy_revocable *l, const void *word,
			 uint64_t ended)
{
	return false;
}

enum copy_revocable_end copy_revocable_move(const struct copy_revocable *l,
					    const struct space_move *m)
{
	return COPY_REVOCABLE_FAULT;
}

enum copy_revocable_end copy_revocable_atomic(const struct copy_revocable *l,
					      enum space_atomic op, void *word,
					      uint64_t swap_add,
					      uint64_t compare, uint64_t *old)
{
	return COPY_REVOCABLE_FAULT;
}

#endif
