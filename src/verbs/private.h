/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bodies behind the table in private.c, and the symbols of the private
 * node that are not in it.  No state, no lock.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <stdbool.h>

extern bool verbs_allow_disassociate_destroy;

/* EOPNOTSUPP; NULL and errno EOPNOTSUPP; no effect. */
int private_command(void);
void *private_maker(void);
void private_nothing(void);

unsigned int __ioctl_final_num_attrs(void);
int ibv_read_ibdev_sysfs_file(void);

#endif
