/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch.h"
#include "device/sysfs.h"

#include "absent.h"
#include "loader.h"

#include "host/host.h"
#include "util/rlimit.h"
#include "util/runtime_tree.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* launch_init looks for a folder with this file. */
#define LIBRARY	    "libibverbs.so.1"
#define SCRIPTS_MAX 4 /* the most interpreters that find_executed follows */

const char launch_pcap_help[] =
	"  --pcap FILE      write every frame to FILE (pcapng, opens in "
	"Wireshark)\n";
const char launch_help[] =
	"  --no-shim        do not show /sys/class/infiniband and "
	"/dev/infiniband, and do\n"
	"                   not answer `rdma link`\n"
	"  --shim           say why if the program does not see these folders\n"
	"  --explain, --no-explain\n"
	"                   write, or do not write, one sentence on stderr for "
	"each\n"
	"                   cause of failure (default: write)\n"
	"  --strict         keep the timing of the specification: give up a "
	"stopped peer\n"
	"                   as early as a dead peer\n"
	"  --device LIST    the interfaces that become devices (eth0,iwarp:eth0)\n"
	"  --private        run in a new network namespace, which has only "
	"loopback\n";

/* Finds the path of this program's file; without /proc, the path by which the
 * program was executed.  Returns 0 or -errno. */
static int find_self(char self[PATH_MAX])
{
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

	if (n < 0)
		return name && realpath(name, self) ? 0 : -errno;
	self[n] = '\0';
	return 0;
}

int launch_beside(const char *name, char *path)
{
	char self[PATH_MAX];
	char *slash;
	int err = find_self(self);

	if (err)
		return err;
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	if (snprintf(path, PATH_MAX, "%s/%s", self, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return 0;
}

static bool holds_libraries(const char *dir)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, LIBRARY);
	return access(path, R_OK) == 0;
}

/* A build tree has tools/adverb and lib/.  An installation has bin/adverb and
 * lib/adverb/ or, if meson was told so, the folder ADVERB_LIBDIR. */
int launch_init(struct launch *l)
{
	static const char *const places[] = {"../lib/adverb", ADVERB_LIBDIR,
					     "../lib"};

	memset(l, 0, sizeof(*l));
	l->shim = true;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[PATH_MAX];

		if (launch_beside(places[i], path) < 0 ||
		    !realpath(path, l->libdir))
			continue;
		if (holds_libraries(l->libdir))
			return 0;
	}
	fprintf(stderr,
		"adverb: %s is in none of the folders ../lib/adverb, " ADVERB_LIBDIR
		" and ../lib beside this program; build or "
		"install adverb completely.\n",
		LIBRARY);
	return -1;
}

void launch_env(struct launch *l, const char *name_value)
{
	size_t room = (size_t)l->env_count + 1;

	l->env = reallocarray(l->env, room, sizeof(*l->env));
	if (!l->env)
		abort();
	l->env[l->env_count++] = name_value;
}

bool launch_env_is(const char *text)
{
	const char *equals = strchr(text, '=');

	if (equals && equals != text)
		return true;
	fprintf(stderr, "adverb: \"%s\" sets no variable; write NAME=VALUE.\n",
		text);
	return false;
}

void launch_set(struct launch *l, const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		abort();
	launch_env(l, text);
}

bool launch_option(struct launch *l, int option, const char *value)
{
	char cwd[PATH_MAX];
	char full[2 * PATH_MAX];

	switch (option) {
	case LAUNCH_OPT_PCAP:
		/* the program may change its directory before it opens the file
		 */
		if (value[0] != '/' && getcwd(cwd, sizeof(cwd))) {
			snprintf(full, sizeof(full), "%s/%s", cwd, value);
			value = full;
		}
		launch_set(l, "ADVERB_PCAP", value);
		return true;
	case LAUNCH_OPT_SHIM:
	case LAUNCH_OPT_NO_SHIM:
		l->shim = l->insists = option == LAUNCH_OPT_SHIM;
		return true;
	case LAUNCH_OPT_EXPLAIN:
		launch_env(l, "ADVERB_EXPLAIN=1");
		return true;
	case LAUNCH_OPT_NO_EXPLAIN:
		launch_env(l, "ADVERB_EXPLAIN=0");
		return true;
	case LAUNCH_OPT_STRICT:
		launch_env(l, "ADVERB_STRICT=1");
		return true;
	case LAUNCH_OPT_DEVICE:
		launch_set(l, "ADVERB_DEVICES", value);
		return true;
	case LAUNCH_OPT_PRIVATE:
		l->private = true;
		return true;
	default:
		return false;
	}
}

/* Returns 0 if execve would read the file, or -errno: -EACCES with *is_file if
 * the file is not executable, -EACCES without it for a device or the like,
 * -EISDIR for a folder. */
static int check_file(const char *path, bool *is_file)
{
	struct stat st;

	*is_file = false;
	if (stat(path, &st))
		return -errno;
	*is_file = S_ISREG(st.st_mode);
	if (!*is_file)
		return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

/* Does what launch_find does, with `dir` as PATH; NULL: PATH is not set.
 * Unlike execvp, reports EACCES only for a file of this name.  A folder that
 * cannot be searched tells nothing about the program. */
static int find_in(const char *dir, const char *program, char *path)
{
	bool is_denied = false, is_file;

	if (strchr(program, '/')) {
		snprintf(path, PATH_MAX, "%s", program);
		return check_file(path, &is_file);
	}
	if (!dir)
		dir = "/bin:/usr/bin";
	/* an empty name, also after the last ':', is the working directory */
	for (;;) {
		int len = (int)strcspn(dir, ":"), err;

		snprintf(path, PATH_MAX, "%.*s/%s", len ? len : 1,
			 len ? dir : ".", program);
		err = check_file(path, &is_file);
		if (!err)
			return 0;
		is_denied |= err == -EACCES && is_file;
		if (!dir[len])
			return is_denied ? -EACCES : -ENOENT;
		dir += len + 1;
	}
}

int launch_find(const char *program, char *path)
{
	return find_in(secure_getenv("PATH"), program, path);
}

/* Returns the PATH that launch_exec will set; NULL: none. */
static const char *path_of(const struct launch *l)
{
	for (int i = l->env_count - 1; i >= 0; i--)
		if (!strncmp(l->env[i], "PATH=", 5))
			return l->env[i] + 5;
	return secure_getenv("PATH");
}

/*
 * Finds the privilege because of which the loader ignores LD_* (AT_SECURE);
 * NULL: none.  A file gives no privilege under no_new_privs, on a file system
 * that is mounted with the option nosuid, or if this process already has the
 * user or group of the file.
 */
static const char *find_privilege(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || stat(path, &st) < 0)
		return NULL;
	if (!statvfs(path, &fs) && fs.f_flag & ST_NOSUID)
		return NULL;
	if ((st.st_mode & S_ISUID) && st.st_uid != geteuid())
		return "set-user-ID";
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    st.st_gid != getegid())
		return "set-group-ID";
	if (geteuid() != 0 &&
	    getxattr(path, "security.capability", NULL, 0) > 0)
		return "given file capabilities";
	return NULL;
}

/* Does the name of the libraries' folder have a character that separates names
 * in the loader's lists?  If so, says it on stderr. */
static bool has_unfit_name(const struct launch *l)
{
	const char *bad = strpbrk(l->libdir, l->preload ? ":; " : ":;");

	if (!bad)
		return false;
	fprintf(stderr,
		"adverb: '%c' separates names in the loader's variables, so "
		"the loader cannot search %s; move adverb to a folder without "
		"this character in its name.\n",
		*bad, l->libdir);
	return true;
}

/*
 * Finds the file that the kernel executes for @path: @path, or for a script its
 * interpreter, which may be a script too.  The loader sees that file only, and
 * the kernel takes privileges from that file only.  Stores the file's facts in
 * l->facts, its folder in l->origin and its name in @executed; "": @path, or
 * its interpreter, is a text without an interpreter, which execvp gives to the
 * shell.
 */
static void find_executed(struct launch *l, const char *path,
			  char executed[PATH_MAX])
{
	bool is_read = binary_read(path, &l->facts) == 0;
	char *slash;

	snprintf(executed, PATH_MAX, "%s", path);
	for (int i = 0; i < SCRIPTS_MAX && l->facts.interpreter[0]; i++) {
		memcpy(executed, l->facts.interpreter, PATH_MAX);
		is_read = binary_read(executed, &l->facts) == 0;
	}
	if (!realpath(executed, l->origin))
		l->origin[0] = '\0';
	slash = strrchr(l->origin, '/');
	if (slash)
		slash[slash == l->origin] = '\0';
	if (is_read && l->facts.kind == BINARY_SCRIPT)
		executed[0] = '\0';
}

/* Clears l->shim for a program that would end if the shim were preloaded; says
 * so on stderr if l->insists. */
static void withdraw_shim(struct launch *l, const char *path)
{
	const char *why = NULL;

	if (l->facts.musl)
		why = "its C library is musl, which cannot load "
		      "adverb's libraries";
	else if (l->facts.old_asan)
		why = "its AddressSanitizer must come first among libraries";
	if (!why || !l->shim)
		return;
	l->shim = false;
	if (l->insists)
		fprintf(stderr, "adverb: %s runs without --shim: %s.\n", path,
			why);
}

static int refuse_program(const char *path, const char *why)
{
	fprintf(stderr, "adverb: %s is %s.\n", path, why);
	return 126;
}

/* Says that the loader ignores LD_*.  For sudo, su, doas and pkexec, which only
 * start programs, the advice is to let them start adverb. */
static int refuse_privilege(const char *path, const char *why)
{
	static const char *const starters[] = {"sudo", "su", "doas", "pkexec"};
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++) {
		if (strcmp(name, starters[i]) != 0)
			continue;
		fprintf(stderr,
			"adverb: %s is %s and drops the variables by which "
			"programs find adverb; let %s start adverb, as in "
			"`%s adverb run -- ...`, or see man adverb-install.\n",
			path, why, name, name);
		return 126;
	}
	fprintf(stderr,
		"adverb: %s is %s, so the loader ignores LD_LIBRARY_PATH; run "
		"an unprivileged copy of the program (cp %s .) or use `setpriv "
		"--no-new-privs`.\n",
		path, why, path);
	return 126;
}

/*
 * Is one of the three libraries missing, unreadable, or on a file system that
 * is mounted with the option noexec?  Then the program would load the system's
 * library, which has none of adverb's devices.  Says on stderr which library it
 * is.  If only the shim is missing, unreadable or on such a file system, says
 * that, clears l->shim, and returns false.
 */
static bool is_incomplete(struct launch *l)
{
	char why[LOADER_WHY];
	bool lacks = loader_lacks_library(l->libdir, why);

	if (lacks || (l->shim && loader_lacks_shim(l->libdir, why))) {
		fprintf(stderr, "adverb: %s.\n", why);
		l->shim = false;
	}
	return lacks;
}

/* Refuses a program to which, or to whose interpreter, the kernel gives a
 * privilege.  Returns 0 or an exit status. */
static int check_privilege(const char *path, const char *executed)
{
	const char *why = executed[0] ? find_privilege(executed) : NULL;

	if (!why)
		return 0;
	if (strcmp(path, executed) == 0)
		return refuse_privilege(path, why);
	fprintf(stderr,
		"adverb: %s is a script for %s, which is %s, so the loader "
		"ignores LD_LIBRARY_PATH; name an unprivileged copy of %s in "
		"the script's first line, or use `setpriv --no-new-privs`.\n",
		path, executed, why, executed);
	return 126;
}

int launch_check(struct launch *l, const char *program)
{
	char path[PATH_MAX], executed[PATH_MAX];
	int err = find_in(path_of(l), program, path);
	bool is_script;

	if (err)
		return absent_say(program, -err);
	find_executed(l, path, executed);
	is_script = strcmp(path, executed) != 0;
	err = check_privilege(path, executed);
	if (err)
		return err;
	/* A script may start programs that load libraries, even if its
	 * interpreter does not. */
	if (l->facts.kind == BINARY_STATIC && !is_script)
		return refuse_program(path,
				      "statically linked and never loads "
				      "libibverbs.so.1; link it dynamically");
	if (l->facts.kind == BINARY_FOREIGN && !is_script)
		return refuse_program(
			path, "built for another processor or word size "
			      "than adverb's libraries; use a build for "
			      "this machine");
	l->preload |= l->facts.rpath;
	withdraw_shim(l, path);
	return has_unfit_name(l) || is_incomplete(l) ? 126 : 0;
}

/* Removes the limit RLIMIT_MEMLOCK, or raises the soft limit to the hard one if
 * this process may do no more: adverb locks no memory, but some programs end if
 * the limit is low. */
static void raise_memlock(void)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &none))
		rlimit_raise(RLIMIT_MEMLOCK);
}

/* Calls sysfs_path with its messages off: the program will print them. */
static bool write_tree(void)
{
	const char *old = secure_getenv("ADVERB_EXPLAIN");
	char *kept = old ? strdup(old) : NULL;
	bool written;

	setenv("ADVERB_EXPLAIN", "0", 1);
	written = sysfs_path();
	if (kept)
		setenv("ADVERB_EXPLAIN", kept, 1);
	else
		unsetenv("ADVERB_EXPLAIN");
	free(kept);
	return written;
}

/*
 * Writes the files that the shim shows: libibverbs writes them too, but a
 * program that only looks at /sys never calls libibverbs.  If the files cannot
 * be written, the shim prints the value of ADVERB_NO_TREE in a program that
 * looks at /sys.
 */
static void prepare_tree(const struct launch *l)
{
	char why[sizeof(((struct runtime_tree *)0)->why) + 128];

	unsetenv("ADVERB_NO_TREE");
	if (write_tree())
		return;
	sysfs_failure(why, sizeof(why));
	setenv("ADVERB_NO_TREE", why, 1);
	if (l->insists)
		fprintf(stderr, "adverb: --shim has nothing to show: %s.\n",
			why);
}

/* Says why execvp failed, and returns an exit status.  ENOENT may be about the
 * program, or about the interpreter or the loader that the program names. */
static int say_not_run(const char *program, int err)
{
	char path[PATH_MAX];

	if (err == ENOENT && launch_find(program, path) == 0) {
		fprintf(stderr,
			"adverb: cannot run %s: the interpreter or loader that "
			"it names is missing; install that, or correct the "
			"name.\n",
			path);
		return 126;
	}
	/* execvp reports EACCES for a folder of PATH, too */
	if (err == EACCES && launch_find(program, path) == -ENOENT)
		err = ENOENT;
	return absent_say(program, err);
}

int launch_exec(const struct launch *l, char *const argv[])
{
	for (int i = 0; i < l->env_count; i++)
		putenv((char *)(uintptr_t)l->env[i]);
	raise_memlock();
	if (l->shim)
		prepare_tree(l);
	loader_set(l);
	execvp(argv[0], argv);
	return say_not_run(argv[0], errno);
}
