/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * install: `adverb install` and `adverb uninstall`: put this adverb into a
 * root folder so that programs find it without LD_LIBRARY_PATH, which sudo,
 * mpirun and ssh strip; and take it out again.
 */
#ifndef TOOLS_INSTALL_H
#define TOOLS_INSTALL_H

int install_main(int argc, char **argv);
int install_undo_main(int argc, char **argv);

#endif
