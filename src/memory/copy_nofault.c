/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/copy_nofault.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "log/env.h"
#include "memory/copy_revocable.h"
#include "util/crc.h"
#include "util/crccopy.h"
#include "util/shared.h"
#include "util/instrument.h"

#define LOOK_NS		   200000    /* the time between two checks */
#define ENHANCED_REP_MOVSB (1u << 9) /* of CPUID leaf 7, EBX */
#define ALIAS		   4096	     /* see is_slow_distance */
#define ALIAS_SLOW	   64

#if defined(__x86_64__)

/*
 * The functions between copy_nofault_first and copy_nofault_last use no stack
 * and save no registers: after a fault at any of their instructions, a jump to
 * copy_nofault_fault returns 1 to the caller.
 */
__asm__(".pushsection .text\n"
	".p2align 4\n"
	"copy_nofault_first:\n"
	"copy_nofault_bytes:\n" /* (to, from, bytes) */
	"	.cfi_startproc\n"
	"	mov %rdx, %rcx\n"
	"	rep movsb\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_words:\n" /* (to, from, bytes) */
	"	mov %rdx, %rcx\n"
	"	shr $6, %rcx\n"
	"	jz 2f\n"
	"1:	movups (%rsi), %xmm0\n"
	"	movups 16(%rsi), %xmm1\n"
	"	movups 32(%rsi), %xmm2\n"
	"	movups 48(%rsi), %xmm3\n"
	"	movups %xmm0, (%rdi)\n"
	"	movups %xmm1, 16(%rdi)\n"
	"	movups %xmm2, 32(%rdi)\n"
	"	movups %xmm3, 48(%rdi)\n"
	"	add $64, %rsi\n"
	"	add $64, %rdi\n"
	"	dec %rcx\n"
	"	jnz 1b\n"
	"2:	mov %edx, %ecx\n"
	"	and $63, %ecx\n"
	"	rep movsb\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_put1:\n" /* (to, value) */
	"	movb %sil, (%rdi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_put2:\n"
	"	movw %si, (%rdi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_put4:\n"
	"	movl %esi, (%rdi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_put8:\n"
	"	movq %rsi, (%rdi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"copy_nofault_last:\n"
	"copy_nofault_fault:\n"
	"	mov $1, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	/*
	 * Calls copy(to, from, bytes, crc).  After a fault inside that call,
	 * the signal handler abandons the call: the thread continues at
	 * copy_nofault_steps_fault, or at copy_nofault_wide_fault if the copy
	 * uses the upper halves of vector registers.  The handler sets the
	 * stack pointer to *sp, where the registers that a function must
	 * preserve are saved.
	 */
	"copy_nofault_steps:\n" /* (to, from, bytes, crc, copy, sp) */
	"	push %rbx\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	sub $8, %rsp\n"
	"	mov %rsp, (%r9)\n"
	"	call *%r8\n"
	"	xor %eax, %eax\n"
	"copy_nofault_back:\n"
	"	add $8, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	"copy_nofault_wide_fault:\n"
	"	vzeroupper\n"
	"copy_nofault_steps_fault:\n"
	"	mov $1, %eax\n"
	"	jmp copy_nofault_back\n"
	".popsection\n");

extern const char copy_nofault_first[], copy_nofault_last[],
	copy_nofault_fault[];
extern const char copy_nofault_wide_fault[], copy_nofault_steps_fault[];
int copy_nofault_steps(void *to, const void *from, size_t bytes, uint32_t *crc,
		       crctier_copy *copy, uintptr_t *sp);
int copy_nofault_bytes(void *to, const void *from, size_t bytes);
int copy_nofault_words(void *to, const void *from, size_t bytes);
int copy_nofault_put1(void *to, uint64_t value);
int copy_nofault_put2(void *to, uint64_t value);
int copy_nofault_put4(void *to, uint64_t value);
int copy_nofault_put8(void *to, uint64_t value);

static const int signals[2] = {SIGSEGV, SIGBUS};
/* The actions of these signals before copy_nofault_open.  If the program had
 * replaced the handler when copy_nofault_close was called, the program's
 * handler may call handle_fault, and may be the first action after the next
 * copy_nofault_open.  The second action is then the one that handle_fault had
 * before, and levels[i] is 2. */
static struct sigaction before[2][2];
static int levels[2]; /* how many actions of before[i] count */
static bool is_replaced[2];
/* The call by pass_on of a handler in this thread.  A handler that does not
 * return leaves the struct as it is. */
static _Thread_local struct passing {
	const void *context; /* the handler's third argument */
	const char *frame;   /* of handle_fault */
	int level;	     /* the second index of `before` */
} passing;
static bool is_open; /* adverb's handlers were installed */
/* Counts the calls of copy_nofault_open that installed the handlers, and the
 * calls of copy_nofault_close.  The stores of is_open, `steps`, steps_fault and
 * uses_strings come before the store of the new count (release), and a thread
 * loads the count (acquire) before it reads these variables.  Otherwise the
 * thread could keep an old is_open for 200 us, or could fault in one of `steps`
 * and continue at address 0, an old steps_fault. */
static shared_u32 opened;
static _Atomic uint64_t turn_ns; /* the progress clock */
/* The result of this thread's last check of the handler.  It is kept because a
 * check takes three system calls, too many for each packet.  It is kept for
 * each thread because threads differ in their signal masks. */
static _Thread_local struct {
	bool is_on;
	uint32_t opened;    /* `opened` at the check */
	uint64_t looked_ns; /* turn_ns at the check */
} known;
/* The stack pointer in this thread's call of copy_nofault_steps. */
static _Thread_local uintptr_t steps_sp;
/* By enum crc_kind: the copy that computes the CRC of whole steps; NULL: this
 * processor has no such copy. */
static crctier_copy *steps[CRC_KINDS];
/* Where a thread continues after a fault in one of `steps`. */
static const char *steps_fault;
/* Copies without a CRC use `rep movsb`. */
static bool uses_strings = true;

/* Has an instruction of this process raised the signal?  Then the instruction
 * raises the signal again when it is executed again.  No instruction has raised
 * a signal that a process has sent, or BUS_MCEERR_AO, which tells of damaged
 * memory that was not used yet. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0 &&
	       !(info->si_signo == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static bool is_handler(sighandler_t action)
{
	return action != SIG_DFL && action != SIG_IGN;
}

/* Returns the action of *old, one of `before`.  As in the kernel, one signal
 * alone gets a handler with SA_RESETHAND, even if two threads fault at once;
 * later signals get SIG_DFL.  adverb's own handler stays installed, so that its
 * copies return false even after that. */
static sighandler_t take_action(struct sigaction *old)
{
	sighandler_t *at = &old->sa_handler;
	sighandler_t action = __atomic_load_n(at, __ATOMIC_RELAXED);

	return is_handler(action) && old->sa_flags & SA_RESETHAND
		       ? __atomic_exchange_n(at, SIG_DFL, __ATOMIC_RELAXED)
		       : action;
}

/* Blocks the signals that the kernel would block for the handler of `old`.  The
 * kernel blocks `sig` for handle_fault, and restores the mask when handle_fault
 * returns. */
static void set_mask(int sig, const struct sigaction *old)
{
	sigset_t own;

	pthread_sigmask(SIG_BLOCK, &old->sa_mask, NULL);
	if (!(old->sa_flags & SA_NODEFER) || sigismember(&old->sa_mask, sig))
		return;
	sigemptyset(&own);
	sigaddset(&own, sig);
	pthread_sigmask(SIG_UNBLOCK, &own, NULL);
}

static void call_handler(int sig, siginfo_t *info, void *context,
			 const struct sigaction *old)
{
	set_mask(sig, old);
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else
		old->sa_handler(sig);
}

/* Returns which action of before[i] gets the signal.  If the first action may
 * call handle_fault with its own arguments, the second one gets the signal of
 * such a call. */
static int level_of(int i, const void *context, const char *frame)
{
	bool is_called = context == passing.context && frame < passing.frame;

	return levels[i] == 2 && is_called ? passing.level + 1 : 0;
}

/* Passes the signal to the handler, or to the default action, that was
 * installed before adverb's handler. */
static void pass_on(int i, int sig, siginfo_t *info, void *context)
{
	static const struct sigaction default_action;
	const struct passing outer = passing;
	char *frame = __builtin_frame_address(0);
	int level = level_of(i, context, frame);
	struct sigaction old = {.sa_handler = SIG_DFL};

	if (level < 2) {
		old = before[i][level];
		old.sa_handler = take_action(&before[i][level]);
	}
	/* SIG_DFL and SIG_IGN mean the same with SA_SIGINFO as without. */
	if (is_handler(old.sa_handler)) {
		passing = (struct passing){context, frame, level};
		call_handler(sig, info, context, &old);
		passing = outer;
	} else if (old.sa_handler == SIG_DFL || is_fault(info)) {
		/* After a fault the instruction is executed again, and faults
		 * again.  Linux then ends a process that ignores the signal,
		 * too.  A signal that no instruction has raised must be raised
		 * again. */
		sigaction(sig, &default_action, NULL);
		if (!is_fault(info))
			raise(sig);
	}
}

static void handle_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	greg_t *ip = &c->uc_mcontext.gregs[REG_RIP];

	if (!is_fault(info)) {
		/* The interrupted instruction is not to blame. */
		pass_on(sig == SIGBUS, sig, info, context);
	} else if (*ip >= (greg_t)(uintptr_t)copy_nofault_first &&
		   *ip < (greg_t)(uintptr_t)copy_nofault_last) {
		*ip = (greg_t)(uintptr_t)copy_nofault_fault;
	} else if (crccopy_is_at((uintptr_t)*ip)) {
		*ip = (greg_t)(uintptr_t)steps_fault;
		c->uc_mcontext.gregs[REG_RSP] = (greg_t)steps_sp;
	} else if (copy_revocable_is_at((uintptr_t)*ip)) {
		*ip = (greg_t)copy_revocable_fault_at();
	} else {
		pass_on(sig == SIGBUS, sig, info, context);
	}
}

/* On a processor without this feature, for example an emulator, `rep movsb`
 * moves one byte at a time. */
static bool has_fast_strings(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       b & ENHANCED_REP_MOVSB;
}

void copy_nofault_choose(bool fast_strings)
{
	uses_strings = fast_strings;
}

/* Would `rep movsb` move one byte at a time?  Processors do so if `to` is a few
 * bytes above `from`, since the bytes might overlap.  Zen 4 compares only the
 * last 12 bits of the addresses, and copies at 3.5 GB/s instead of 50 GB/s if
 * they differ by 1 to 15.  For distances up to 63, vector registers are as fast
 * as `rep movsb`. */
static bool is_slow_distance(const void *to, const void *from)
{
	return ((uintptr_t)to - (uintptr_t)from - 1) % ALIAS < ALIAS_SLOW - 1;
}

/* Copies without a CRC.  Returns 0; or 1: some of the memory is not
 * accessible. */
static int plain_copy(void *to, const void *from, size_t bytes)
{
	return uses_strings && !is_slow_distance(to, from)
		       ? copy_nofault_bytes(to, from, bytes)
		       : copy_nofault_words(to, from, bytes);
}

static bool is_ours(int i)
{
	struct sigaction now;

	return !sigaction(signals[i], NULL, &now) &&
	       now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle_fault;
}

/* Installs handle_fault for signals[i].  False: the kernel refuses. */
static bool install_handler(int i)
{
	const struct sigaction ours = {.sa_sigaction = handle_fault,
				       .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction now;

	if (is_ours(i)) /* the program has restored it after the close */
		return true;
	if (sigaction(signals[i], NULL, &now))
		return false;
	if (is_replaced[i]) {
		before[i][1] = before[i][0];
		levels[i] = 2;
	} else if (!levels[i]) {
		levels[i] = 1;
	}
	/* Otherwise the close has restored before[i][0], which may pass its
	 * signals on to before[i][1]. */
	before[i][0] = now;
	return !sigaction(signals[i], &ours, NULL);
}

void copy_nofault_open(void)
{
	/* valgrind does not report the exact instruction of a fault. */
	if (is_open || env_is_off("ADVERB_GUARD") || instrument_by_valgrind())
		return;
	for (int i = 0; i < 2; i++)
		if (!install_handler(i))
			return;
	for (int kind = 0; kind < CRC_KINDS; kind++)
		steps[kind] = crccopy_steps((enum crc_kind)kind);
	steps_fault = crccopy_is_wide() ? copy_nofault_wide_fault
					: copy_nofault_steps_fault;
	copy_nofault_choose(has_fast_strings());
	is_open = true;
	shared_store(&opened, shared_own(&opened) + 1);
}

void copy_nofault_close(void)
{
	for (int i = 0; is_open && i < 2; i++) {
		is_replaced[i] = !is_ours(i);
		/* a thread may be in handle_fault, so `before` stays */
		if (!is_replaced[i])
			sigaction(signals[i], &before[i][0], NULL);
	}
	is_open = false;
	shared_store(&opened, shared_own(&opened) + 1);
}

void copy_nofault_turn(uint64_t now_ns)
{
	uint64_t last = atomic_load_explicit(&turn_ns, memory_order_relaxed);

	/* Stores are rare, since each takes the cache line from the threads
	 * that read the word. */
	if ((int64_t)(now_ns - last) > LOOK_NS / 4)
		atomic_store_explicit(&turn_ns, now_ns, memory_order_relaxed);
}

/* Is the handler installed, and does this thread leave both signals unblocked?
 * A fault whose signal is blocked ends the process. */
static bool look_at_handler(void)
{
	sigset_t blocked;

	return is_ours(0) && is_ours(1) &&
	       !pthread_sigmask(SIG_BLOCK, NULL, &blocked) &&
	       !sigismember(&blocked, SIGSEGV) &&
	       !sigismember(&blocked, SIGBUS);
}

bool copy_nofault_is_on(void)
{
	uint64_t now = atomic_load_explicit(&turn_ns, memory_order_relaxed);
	uint32_t version = shared_load(&opened);

	if (known.opened != version || now - known.looked_ns > LOOK_NS) {
		known.opened = version;
		known.looked_ns = now;
		known.is_on = is_open && look_at_handler();
	}
	return known.is_on;
}

bool copy_nofault_has_strings(void)
{
	return uses_strings;
}

bool copy_nofault(void *to, const void *from, size_t bytes)
{
	return !plain_copy(to, from, bytes);
}

/* Does the work of copy_nofault_crc and copy_nofault_crc_to.  own: that one of
 * `to` and `from` which is adverb's memory. */
static bool copy_and_sum(void *to, const void *from, const void *own,
			 size_t bytes, enum crc_kind kind, uint32_t *crc)
{
	size_t done = steps[kind] ? bytes - bytes % CRCCOPY_STEP : 0;

	if (done &&
	    copy_nofault_steps(to, from, done, crc, steps[kind], &steps_sp))
		return false;
	if (done == bytes)
		return true; /* a `rep movsb` of no bytes takes 10 ns */
	if (plain_copy((uint8_t *)to + done, (const uint8_t *)from + done,
		       bytes - done))
		return false;
	*crc = crc_update(kind, *crc, (const uint8_t *)own + done,
			  bytes - done);
	return true;
}

bool copy_nofault_crc(void *to, const void *from, size_t bytes,
		      enum crc_kind kind, uint32_t *crc)
{
	return copy_and_sum(to, from, to, bytes, kind, crc);
}

bool copy_nofault_crc_to(void *to, const void *from, size_t bytes,
			 enum crc_kind kind, uint32_t *crc)
{
	return copy_and_sum(to, from, from, bytes, kind, crc);
}

bool copy_nofault_store(void *to, const void *from, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, from, bytes);
	switch (bytes) {
	case 1:
		return !copy_nofault_put1(to, value);
	case 2:
		return !copy_nofault_put2(to, value);
	case 4:
		return !copy_nofault_put4(to, value);
	default:
		return !copy_nofault_put8(to, value);
	}
}

#else

void copy_nofault_choose(bool fast_strings)
{
}

void copy_nofault_open(void)
{
}

void copy_nofault_close(void)
{
}

void copy_nofault_turn(uint64_t now_ns)
{
}

bool copy_nofault_is_on(void)
{
	return false;
}

bool copy_nofault_has_strings(void)
{
	return false;
}

bool copy_nofault(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

bool copy_nofault_crc(void *to, const void *from, size_t bytes,
		      enum crc_kind kind, uint32_t *crc)
{
	memcpy(to, from, bytes);
	*crc = crc_update(kind, *crc, to, bytes);
	return true;
}

bool copy_nofault_crc_to(void *to, const void *from, size_t bytes,
			 enum crc_kind kind, uint32_t *crc)
{
	memcpy(to, from, bytes);
	*crc = crc_update(kind, *crc, from, bytes);
	return true;
}

bool copy_nofault_store(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

#endif
