/* SPDX-License-Identifier: BSD-2-Clause */
/* The processor time that control groups allow this process (cgroups(7)). */
#ifndef TOOLS_CPU_QUOTA_H
#define TOOLS_CPU_QUOTA_H

/*
 * Returns the lowest quota of the process's control group and of the groups
 * above it, in percent of one processor, at least 1; 0: no group has a quota.
 * mounts: the folder where control groups are mounted, /sys/fs/cgroup.
 * membership: a file with the groups of the process, /proc/self/cgroup.  The
 * groups of version 2 count, and those of version 1 that are below mounts/cpu.
 *
 * A group of `membership` that has no folder below `mounts` counts as one
 * without a quota.  This happens in a container: `mounts` may show the
 * container's own group as the uppermost one, although `membership` has the
 * group's path on the host.
 */
long cpu_quota_percent(const char *mounts, const char *membership);

#endif
