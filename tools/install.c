/* SPDX-License-Identifier: BSD-2-Clause */
#include "install.h"

#include "image.h"
#include "launch.h"
#include "loader.h"
#include "vendor.h"

#include "broker/proto.h"
#include "util/remedy.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT(word)    #word
#define TEXT_OF(word) TEXT(word)

#define LIB	      "usr/local/lib/adverb"
#define BIN	      "usr/local/bin"
#define EXE	      "usr/local/libexec"

static const char list_path[] = LIB "/installed";
static const char conf_path[] = "etc/ld.so.conf.d/00-adverb.conf";
static const char conf_text[] =
	"# adverb install; adverb uninstall removes it\n"
	"/" LIB "\n";
/*
 * The folders of the vendors' libraries come last: if the system has a vendor's
 * own library, or gets one later, that library is found first.  The file also
 * names the loader's default folders.  On some systems no other file does, and
 * ldconfig would put the default folders behind the vendors' folders.
 */
static const char vendor_conf_path[] = "etc/ld.so.conf.d/zz-adverb.conf";
static const char vendor_conf_head[] =
	"# adverb install; adverb uninstall removes it\n"
	"/lib/x86_64-linux-gnu\n"
	"/usr/lib/x86_64-linux-gnu\n"
	"/lib64\n"
	"/usr/lib64\n"
	"/lib\n"
	"/usr/lib\n";
/* Every dynamically linked program of the system loads the libraries that this
 * file names before the libraries that the program itself names (ld.so(8)). */
static const char preload_path[] = "etc/ld.so.preload";
/*
 * The system's broker (adverbd(8)) has an account without rights.  Programs
 * know the account as the owner of a folder, which the unit makes.  The folder
 * stays when the broker ends, because a program may look at it before the next
 * broker starts.  The texts of the units equal packaging/adverbd.service and
 * packaging/adverbd.socket byte for byte.
 */
static const char account_path[] = "etc/sysusers.d/adverb.conf";
static const char account_text[] =
	"# adverb install --service; adverb uninstall removes it\n"
	"u adverb - \"broker of UDP port 4791\"\n";
static const char unit_path[] = "etc/systemd/system/adverbd.service";
static const char unit_text[] =
	"# SPDX-License-Identifier: BSD-2-Clause\n"
	"# Put here by adverb install --service; adverb uninstall removes it.\n"
	"[Unit]\n"
	"Description=adverb's broker of UDP port 4791, for all users\n"
	"Documentation=man:adverbd(8)\n"
	"Requires=adverbd.socket\n"
	"After=adverbd.socket\n"
	"# Restart without limit: without a broker any user can bind the port.\n"
	"StartLimitIntervalSec=0\n"
	"\n"
	"[Service]\n"
	"ExecStart=/" LIB "/adverbd --foreground --hold-port\n"
	"Restart=always\n"
	"RestartSec=100ms\n"
	"StandardInput=socket\n"
	"StandardOutput=journal\n"
	"StandardError=journal\n"
	"User=adverb\n"
	"RuntimeDirectory=adverb\n"
	"RuntimeDirectoryMode=0755\n"
	"RuntimeDirectoryPreserve=yes\n"
	"LimitNOFILE=65536\n"
	"UMask=0077\n"
	"CapabilityBoundingSet=\n"
	"NoNewPrivileges=yes\n"
	"PrivateDevices=yes\n"
	"PrivateTmp=yes\n"
	"ProtectSystem=strict\n"
	"ProtectHome=yes\n"
	"ProtectClock=yes\n"
	"ProtectHostname=yes\n"
	"ProtectControlGroups=yes\n"
	"ProtectKernelLogs=yes\n"
	"ProtectKernelModules=yes\n"
	"ProtectKernelTunables=yes\n"
	"RestrictNamespaces=yes\n"
	"RestrictRealtime=yes\n"
	"RestrictSUIDSGID=yes\n"
	"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n"
	"LockPersonality=yes\n"
	"MemoryDenyWriteExecute=yes\n"
	"SystemCallArchitectures=native\n"
	"SystemCallFilter=@system-service\n"
	"\n"
	"[Install]\n"
	"WantedBy=multi-user.target\n";
/* systemd binds the address at boot, so that no other user can.  If a program
 * connects while there is no broker, systemd starts one. */
static const char socket_path[] = "etc/systemd/system/adverbd.socket";
static const char socket_text[] =
	"# SPDX-License-Identifier: BSD-2-Clause\n"
	"# Put here by adverb install --service; adverb uninstall removes it.\n"
	"[Unit]\n"
	"Description=Socket of adverb's broker; a connection starts the broker\n"
	"Documentation=man:adverbd(8)\n"
	"\n"
	"[Socket]\n"
	"ListenSequentialPacket=@adverbd-" TEXT_OF(
		PROTO_VERSION) "\n"
			       "Backlog=1024\n"
			       "\n"
			       "[Install]\n"
			       "WantedBy=sockets.target\n";
static const char main_conf_path[] = "etc/ld.so.conf";
static const char main_conf_text[] = "include /etc/ld.so.conf.d/*.conf\n";

/* The files of the libraries' folder. */
static const char *const libraries[] = {
	"libibverbs.so.1", "librdmacm.so.1", "libibumad.so.3",
	LOADER_SHIM,	   "adverbd",
};

/* Links in the libraries' folder, and their targets.  Programs such as NCCL
 * pass the name without a version to dlopen(3), and would else load the library
 * of the system's development package.  They are links and not copies: the
 * loader knows by the inode that a library is loaded already. */
static const struct {
	const char *path, *target;
} links[] = {
	{LIB "/libibverbs.so", "libibverbs.so.1"},
	{LIB "/librdmacm.so", "librdmacm.so.1"},
	{LIB "/libibumad.so", "libibumad.so.3"},
};

/* The loader's values of $PLATFORM.  For each of them lib/preload has a folder
 * with a shim; that for i686 is an empty library. */
static const char *const platforms[] = {"x86_64", "haswell", "xeon_phi",
					"i686"};

/* Programs by their paths from the folder of this program: `built` in a build
 * tree, `installed` in an installation.  `to` is the path in the root. */
static const struct {
	const char *built, *installed, *to;
} programs[] = {
	{"adverb", "adverb", BIN "/adverb"},
	{"adverb-ipoib", "../libexec/adverb-ipoib", EXE "/adverb-ipoib"},
	{"../sim/adverb-sim", "../libexec/adverb-sim", EXE "/adverb-sim"},
};

static const char *const bench_files[] = {ADVERB_BENCH_FILES};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The files of the system's broker. */
#define SERVICE_FILES 3
static const struct {
	const char *path, *text;
} service_files[SERVICE_FILES] = {
	{account_path, account_text},
	{unit_path, unit_text},
	{socket_path, socket_text},
};

/* The files that an installation puts into the root. */
struct plan {
	struct {
		char from[PATH_MAX];
		char to[IMAGE_PATH];
	} files[IMAGE_MAX];
	size_t count;		/* entries of files in use */
	char vendor_conf[2048]; /* the text of vendor_conf_path */
	bool main_conf; /* put /etc/ld.so.conf, which is missing or adverb's */
	/* The files of the system's broker that are put (service_files). */
	bool service[SERVICE_FILES];
	char preload[256]; /* the text of ld.so.preload; "": it is not put */
};

/* The options of the command line. */
struct wish {
	bool dry;     /* --dry-run */
	bool shim;    /* --shim: put ld.so.preload */
	bool service; /* --service: put the system's broker */
};

/* Plans to copy the file @from to @to.  Returns 0, or -1 after a sentence on
 * stderr. */
static int plan_add(struct plan *p, const char *from, const char *to)
{
	char *kept = p->files[p->count].from;

	if (snprintf(kept, PATH_MAX, "%s", from) >= PATH_MAX ||
	    access(from, R_OK)) {
		fprintf(stderr,
			"adverb: %s is missing; build or install "
			"adverb completely.\n",
			from);
		return -1;
	}
	snprintf(p->files[p->count++].to, IMAGE_PATH, "%s", to);
	return 0;
}

/* Puts into @path the path of @built, if there is such a file beside this
 * program, or else the path of @installed.  Returns 0 or -errno. */
static int find_beside(const char *built, const char *installed, char *path)
{
	if (launch_beside(built, path) == 0 && access(path, R_OK) == 0)
		return 0;
	return launch_beside(installed, path);
}

static int plan_vendor(struct plan *p, const struct vendor *v)
{
	const char *name = strrchr(v->folder, '/') + 1;
	size_t used = strlen(p->vendor_conf);
	size_t left = sizeof(p->vendor_conf) - used;
	char from[PATH_MAX + 80], to[IMAGE_PATH];

	if (snprintf(from, sizeof(from), "%s/%s", v->folder, v->library) <
		    (int)sizeof(from) &&
	    snprintf(to, sizeof(to), LIB "/vendor/%s/%s", name, v->library) <
		    (int)sizeof(to) &&
	    snprintf(p->vendor_conf + used, left, "/" LIB "/vendor/%s\n",
		     name) < (int)left)
		return plan_add(p, from, to);
	fprintf(stderr, "adverb: the path %s is too long; move adverb.\n",
		v->folder);
	return -1;
}

/* Plans the vendors' libraries, each in a folder of its own as in @libdir. */
static int plan_vendors(struct plan *p, const char *libdir)
{
	static struct vendor all[VENDOR_MAX];
	int count = vendor_list(libdir, all), err = 0;

	snprintf(p->vendor_conf, sizeof(p->vendor_conf), "%s",
		 vendor_conf_head);
	for (int i = 0; !err && i < count; i++)
		err = plan_vendor(p, &all[i]);
	return err;
}

/* Plans the shims for each $PLATFORM.  A build without a 32-bit compiler lacks
 * some of them; then ld.so.preload names the shim beside the libraries. */
static int plan_platforms(struct plan *p, const char *libdir)
{
	int err = 0;
	bool all = true;

	for (size_t i = 0; !err && i < COUNT(platforms); i++) {
		char from[PATH_MAX + 80], to[IMAGE_PATH];

		snprintf(from, sizeof(from), "%s/preload/%s/" LOADER_SHIM,
			 libdir, platforms[i]);
		snprintf(to, sizeof(to), LIB "/preload/%s/" LOADER_SHIM,
			 platforms[i]);
		if (access(from, R_OK))
			all = false;
		else
			err = plan_add(p, from, to);
	}
	snprintf(p->preload, sizeof(p->preload),
		 all ? "/" LIB "/preload/$PLATFORM/" LOADER_SHIM "\n"
		     : "/" LIB "/" LOADER_SHIM "\n");
	return err;
}

static int plan_libraries(struct plan *p, const char *libdir)
{
	char path[PATH_MAX + 64], to[IMAGE_PATH];
	int err = 0;

	for (size_t i = 0; !err && i < COUNT(libraries); i++) {
		snprintf(path, sizeof(path), "%s/%s", libdir, libraries[i]);
		snprintf(to, sizeof(to), LIB "/%s", libraries[i]);
		err = plan_add(p, path, to);
	}
	return err || plan_vendors(p, libdir) || plan_platforms(p, libdir);
}

static int plan_files(struct plan *p, bool shim)
{
	char path[PATH_MAX + 64], to[IMAGE_PATH];
	struct launch l;
	int err = launch_init(&l) || plan_libraries(p, l.libdir);

	if (!shim)
		p->preload[0] = '\0';
	for (size_t i = 0; !err && i < COUNT(programs); i++)
		err = find_beside(programs[i].built, programs[i].installed,
				  path) ||
		      plan_add(p, path, programs[i].to);
	for (size_t i = 0; !err && i < COUNT(bench_files); i++) {
		char built[64], installed[64];

		snprintf(built, sizeof(built), "../bench/%s", bench_files[i]);
		snprintf(installed, sizeof(installed),
			 "../libexec/adverb/bench/%s", bench_files[i]);
		snprintf(to, sizeof(to), EXE "/adverb/bench/%s",
			 bench_files[i]);
		err = find_beside(built, installed, path) ||
		      plan_add(p, path, to);
	}
	return err ? -1 : 0;
}

static bool has_glibc(const struct image *im)
{
	static const char *const places[] = {
		"lib/x86_64-linux-gnu/libc.so.6",
		"usr/lib/x86_64-linux-gnu/libc.so.6", "lib64/libc.so.6",
		"usr/lib64/libc.so.6", "usr/lib/libc.so.6"};
	bool has = false;

	for (size_t i = 0; i < COUNT(places); i++)
		has |= image_has(im, places[i]);
	return has;
}

/* Returns why adverb cannot work in the root; NULL: adverb can.  A system with
 * glibc may have musl's loader, too.  A system with musl may have a loader of
 * the name that glibc's loader has, but has no libc.so.6. */
static const char *find_unfit(const struct image *im)
{
	if (image_has(im, "lib/ld-musl-x86_64.so.1") && !has_glibc(im))
		return "its C library is musl, and adverb's libraries need "
		       "glibc";
	if (!image_has(im, "lib64/ld-linux-x86-64.so.2") &&
	    !image_has(im, "usr/lib64/ld-linux-x86-64.so.2"))
		return "it is not the root folder of a system: it has no "
		       "loader of glibc for x86-64";
	if (image_has(im, main_conf_path) &&
	    !image_contains(im, main_conf_path, "ld.so.conf.d/*.conf"))
		return "its /etc/ld.so.conf does not include "
		       "/etc/ld.so.conf.d/*.conf";
	return NULL;
}

/* Says on stderr that ldconfig cannot be run for the root.  err: why `place`,
 * which was tried last, cannot be run.  effect: as in refresh_cache. */
static void say_no_ldconfig(const char *place, int err, const char *effect,
			    const char *root)
{
	if (err == ENOENT)
		fprintf(stderr,
			"adverb: there is neither /usr/sbin/ldconfig nor "
			"/sbin/ldconfig, so %s; run ldconfig -r %s as root on "
			"a system that has ldconfig.\n",
			effect, root);
	else
		fprintf(stderr,
			"adverb: %s cannot be run (%s), so %s; %s, and run "
			"ldconfig -r %s as root.\n",
			place, strerror(err), effect,
			remedy_of(err, "make that file executable"), root);
}

/* Runs ldconfig for the root.  Returns 0, or -1 after a sentence on stderr.
 * effect: what follows if ldconfig does not succeed. */
static int refresh_cache(const struct image *im, const char *effect)
{
	static char name[] = "ldconfig", option[] = "-r";
	char root[PATH_MAX];
	char *const argv[] = {name, option, root, NULL};
	static char path[] = "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin";
	char *const env[] = {path, NULL};
	const char *const places[] = {"/usr/sbin/ldconfig", "/sbin/ldconfig"};
	const char *place = NULL;
	int status = -1, err = ENOENT;
	pid_t pid;

	/* The caller may ignore SIGCHLD, and waitpid would fail. */
	signal(SIGCHLD, SIG_DFL);
	snprintf(root, sizeof(root), "%s", im->root);
	if (im->dry) {
		printf("would run ldconfig -r %s\n", root);
		return 0;
	}
	for (size_t i = 0; err == ENOENT && i < COUNT(places); i++) {
		place = places[i];
		err = posix_spawn(&pid, place, NULL, NULL, argv, env);
	}
	if (!err)
		waitpid(pid, &status, 0);
	if (status == 0)
		return 0;
	if (err)
		say_no_ldconfig(place, err, effect, root);
	else
		fprintf(stderr,
			"adverb: ldconfig -r %s has failed (its message is "
			"above), so %s; mend what ldconfig names, and run "
			"ldconfig -r %s as root.\n",
			root, effect, root);
	return -1;
}

/* Calls what(), which puts or announces a text, for each text in the order of
 * putting.  Returns 0, or the result of the first call that has failed.  A file
 * that names a library or a program is put after the named file, and removed
 * before it. */
static int for_texts(struct image *im, const struct plan *p,
		     int (*what)(struct image *im, const char *text,
				 const char *path))
{
	int err = what(im, conf_text, conf_path);

	if (!err)
		err = what(im, p->vendor_conf, vendor_conf_path);
	if (!err && p->main_conf)
		err = what(im, main_conf_text, main_conf_path);
	if (!err && p->preload[0])
		err = what(im, p->preload, preload_path);
	for (size_t i = 0; !err && i < SERVICE_FILES; i++)
		if (p->service[i])
			err = what(im, service_files[i].text,
				   service_files[i].path);
	return err;
}

static int expect_text(struct image *im, const char *text, const char *path)
{
	return image_expect(im, NULL, text, path);
}

/* Writes the list before any file is put, so that a run that is killed can be
 * repeated or undone. */
static int announce_all(struct image *im, const struct plan *p)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->count; i++)
		err = image_expect(im, p->files[i].from, NULL, p->files[i].to);
	for (size_t i = 0; !err && i < COUNT(links); i++)
		err = image_expect_link(im, links[i].target, links[i].path);
	if (!err)
		err = for_texts(im, p, expect_text);
	return err ? err : image_announce(im);
}

static int put_all(struct image *im, const struct plan *p)
{
	int err = announce_all(im, p);

	for (size_t i = 0; !err && i < p->count; i++) {
		int mode = access(p->files[i].from, X_OK) ? 0644 : 0755;

		err = image_put(im, p->files[i].from, p->files[i].to, mode);
	}
	for (size_t i = 0; !err && i < COUNT(links); i++)
		err = image_put_link(im, links[i].target, links[i].path);
	if (!err)
		err = for_texts(im, p, image_put_text);
	return err ? err : image_settle(im);
}

/* May each planned file be put?  If not, says on stderr which may not. */
static bool is_free(const struct image *im, const struct plan *p)
{
	bool taken = image_is_taken(im, conf_path);

	taken |= image_is_taken(im, vendor_conf_path);
	if (p->preload[0] && image_is_taken(im, preload_path)) {
		taken = true;
		fprintf(stderr,
			"adverb: add this line to the file by hand, or leave "
			"out --shim: %s",
			p->preload);
	}
	for (size_t i = 0; i < SERVICE_FILES; i++)
		taken |= p->service[i] &&
			 image_is_taken(im, service_files[i].path);
	for (size_t i = 0; i < p->count; i++)
		taken |= image_is_taken(im, p->files[i].to);
	for (size_t i = 0; i < COUNT(links); i++)
		taken |= image_is_taken(im, links[i].path);
	return !taken;
}

/* Plans the files of the system's broker: with --service all of them.  Without
 * --service, if the root has the broker's unit, plans those that are as adverb
 * put them.  The others, which the administrator has changed, stay as they are.
 */
static void plan_service(struct plan *p, const struct image *im, bool wanted)
{
	bool has_unit = image_has(im, unit_path);

	for (size_t i = 0; i < SERVICE_FILES; i++)
		p->service[i] =
			wanted ||
			(has_unit && image_is_ours(im, service_files[i].path));
}

static bool puts_service(const struct plan *p)
{
	bool any = false;

	for (size_t i = 0; i < SERVICE_FILES; i++)
		any |= p->service[i];
	return any;
}

static void say_done(const struct image *im, const struct plan *p)
{
	const char *is = im->dry ? "would be" : "is";

	printf("adverb %s in %s: RDMA programs there find adverb's libraries "
	       "first.  To undo: adverb uninstall %s\n",
	       is, im->root, im->root);
	if (p->preload[0])
		printf("adverb's shim %s loaded into every program there, by "
		       "/etc/ld.so.preload.\n",
		       is);
	if (puts_service(p))
		printf("To start the system's broker there, now and at each "
		       "boot: systemd-sysusers && systemctl daemon-reload && "
		       "systemctl enable --now adverbd.socket "
		       "adverbd.service; without systemd, see man adverbd\n");
}

/* Does ld.so.preload name a shim in this folder, although adverb did not write
 * the file, or the file was changed since?  If so, says it on stderr: without
 * the shim every program would print an error.  effect: what follows. */
static bool is_named_by_others(const struct image *im, const char *folder,
			       const char *effect)
{
	if (image_is_ours(im, preload_path) ||
	    !image_contains(im, preload_path, folder))
		return false;
	fprintf(stderr,
		"adverb: /%s in %s names the shim, but differs from what `adverb "
		"install` writes; %s: take that line out first.\n",
		preload_path, im->root, effect);
	return true;
}

/* Is this path of the list that of a shim for a $PLATFORM which is not planned,
 * so that an installation removes the shim? */
static bool loses_shim(const struct plan *p, const char *path)
{
	static const char folder[] = LIB "/preload/";

	if (strncmp(path, folder, sizeof(folder) - 1) != 0)
		return false;
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->files[i].to, path) == 0)
			return false;
	return true;
}

/* Would the installation remove a shim that ld.so.preload may name?  If so,
 * says it on stderr. */
static bool loses_named_shim(const struct image *im, const struct plan *p)
{
	size_t i = 0;

	while (i < im->count && !loses_shim(p, im->entries[i].path))
		i++;
	return i < im->count &&
	       is_named_by_others(im, "/" LIB "/preload/",
				  "this build of adverb lacks a shim that "
				  "is installed there");
}

static int install_into(struct image *im, const struct wish *wish)
{
	static struct plan p;
	const char *why = find_unfit(im);

	if (why) {
		fprintf(stderr, "adverb: cannot install into %s: %s.\n",
			im->root, why);
		return 1;
	}
	if (plan_files(&p, wish->shim))
		return 1;
	p.main_conf = image_is_ours(im, main_conf_path) ||
		      !image_contains(im, main_conf_path, "ld.so.conf.d/");
	plan_service(&p, im, wish->service);
	if (!is_free(im, &p) || loses_named_shim(im, &p)) {
		fprintf(stderr, "adverb: nothing was installed.\n");
		return 1;
	}
	if (put_all(im, &p) ||
	    refresh_cache(im, "programs do not find adverb yet"))
		return 1;
	say_done(im, &p);
	return 0;
}

static int uninstall_from(struct image *im, const struct wish *wish)
{
	if (im->count == 0) {
		fprintf(stderr,
			"adverb: %s has no adverb that `adverb "
			"install` put there; nothing is removed.\n",
			im->root);
		return 1;
	}
	if (is_named_by_others(im, "/" LIB "/", "nothing is removed"))
		return 1;
	if (image_clear(im) ||
	    refresh_cache(im, "the loader's cache still names adverb's files"))
		return 1;
	return 0;
}

static void install_help(FILE *out)
{
	fprintf(out,
		"usage: adverb install [--dry-run] [--service] [--shim] DIR|/\n"
		"\n"
		"Puts this adverb into a system: / or the root of an unpacked "
		"image.  Programs\n"
		"there find adverb's libraries before the system's, without "
		"`adverb run`, also\n"
		"where sudo, mpirun or ssh strip the environment.  No other "
		"file is changed, except\n"
		"ldconfig's caches.  /" LIB "/installed lists the files that "
		"were put.\n"
		"\n"
		"  --service        put the system's broker too: an account and "
		"units of systemd\n"
		"  --dry-run        say what would be done, do nothing\n"
		"  --shim           show every program there "
		"/sys/class/infiniband, by\n"
		"                   /etc/ld.so.preload; the man page names the "
		"dangers\n"
		"  -h, --help       this text\n"
		"\n"
		"More: man adverb-install\n");
}

static void uninstall_help(FILE *out)
{
	fprintf(out,
		"usage: adverb uninstall [--dry-run] DIR|/\n"
		"\n"
		"Removes what `adverb install` put into a system: / or the root "
		"of an unpacked\n"
		"image.  A file that was changed since stays.\n"
		"\n"
		"  --dry-run        say what would be done, do nothing\n"
		"  -h, --help       this text\n"
		"\n"
		"More: man adverb-uninstall\n");
}

static int run_command(int argc, char **argv, const char *shorts,
		       void (*help)(FILE *out),
		       int (*what)(struct image *im, const struct wish *wish))
{
	static const struct option options[] = {
		{"dry-run", no_argument, NULL, 'n'},
		{"service", no_argument, NULL, 'b'},
		{"shim", no_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct wish wish = {.dry = false};
	struct image im;
	int c, status;

	while ((c = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		if (!strchr(shorts, c) || c == 'h') {
			help(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
		wish.dry |= c == 'n';
		wish.shim |= c == 's';
		wish.service |= c == 'b';
	}
	if (optind + 1 != argc || !*argv[optind]) {
		help(stderr);
		return 2;
	}
	umask(022); /* all users may read the files, ldconfig's cache too */
	if (image_open(&im, argv[optind], list_path, wish.dry))
		return 1;
	status = what(&im, &wish);
	image_close(&im);
	return status;
}

int install_main(int argc, char **argv)
{
	return run_command(argc, argv, "hnsb", install_help, install_into);
}

int install_undo_main(int argc, char **argv)
{
	return run_command(argc, argv, "hn", uninstall_help, uninstall_from);
}
