/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * install: `adverb install` puts this adverb into a root folder so that
 * programs find its libraries without LD_LIBRARY_PATH, which sudo, mpirun and
 * ssh strip.  `adverb uninstall` removes adverb from the root folder.
 */
#ifndef TOOLS_INSTALL_H
#define TOOLS_INSTALL_H

/* Runs `adverb install`; @argv[0] is "install".  Returns an exit status: 0; 1
 * after a sentence on stderr; 2 if the command line is wrong. */
int install_main(int argc, char **argv);
/* Runs `adverb uninstall`; @argv[0] is "uninstall".  Returns an exit status: 0;
 * 1 after a sentence on stderr; 2 if the command line is wrong. */
int install_undo_main(int argc, char **argv);

#endif
