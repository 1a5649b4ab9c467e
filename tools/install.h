/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * install: `adverb install` puts this adverb into a root folder so that
 * programs find its libraries without LD_LIBRARY_PATH, which sudo, mpirun and
 * ssh strip.  `adverb uninstall` removes adverb from the root folder.
 */
#ifndef TOOLS_INSTALL_H
#define TOOLS_INSTALL_H

/* @argv[0] is "install".  Returns an exit status. */
int install_main(int argc, char **argv);
/* @argv[0] is "uninstall".  Returns an exit status. */
int install_undo_main(int argc, char **argv);

#endif
