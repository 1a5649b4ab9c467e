/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether a descriptor number still refers to the file that adverb has
 * opened.  A program may close all descriptors that it does not know, or dup2 a
 * file of its own over one of adverb's, in the child of a fork or while a
 * device is open.  From then on the number is the program's: if adverb closed,
 * read or wrote that number, it would damage a file of the program.
 *
 * A mark records the device and inode of the file.  A file that has no inode of
 * its own, for example an eventfd, also gets a signal number that is set with
 * F_SETSIG and never sent.
 *
 * Each number has one owner, which marks the number when it opens the file and
 * closes the file by fd_identity_close.  So there is no lock.  An owner keeps
 * the number until then, even if the program closes the file: a file that
 * adverb opens meanwhile gets another number.  A child of fork inherits the
 * marks of its parent.
 */
#ifndef UTIL_FD_IDENTITY_H
#define UTIL_FD_IDENTITY_H

#include <stdbool.h>

/*
 * Marks fd, which was just opened, or which its last owner has marked and gives
 * to the caller, and returns fd.  If the program has closed a standard
 * descriptor (0, 1 or 2), or a descriptor of adverb's that has a mark, a file
 * that was just opened may have that number.  Then the file is first moved to a
 * higher number, with FD_CLOEXEC, that is free and has no mark; that number is
 * marked and returned, and fd is closed.  If there is no such number, the file
 * stays at fd.  So the caller uses only the returned number from then on, and
 * calls this function before it stores fd or adds fd to an epoll(7) set.
 *
 * A negative fd is returned without a mark.  A descriptor of 2^20 or more gets
 * no mark either, nor does any descriptor if memory is short or fstat(2) fails;
 * fd_identity_holds then returns true.
 */
int fd_identity_note(int fd);
/* Marks fd under its number, and moves no file.  Called by code that has put
 * another file at the number, or that got fd from code that has called
 * fd_identity_note. */
void fd_identity_mark(int fd);
/*
 * Marks fd, which was just opened, and returns it, or the number to which the
 * file was moved, as fd_identity_note does; a negative fd is returned without a
 * mark.  Sets no signal, since the program sees this descriptor and may set a
 * signal itself.  If the file has no inode of its own, fd_identity_holds can
 * tell the file only from files with another inode.  For example, it takes
 * another eventfd for this one.
 */
int fd_identity_note_shown(int fd);
/* Returns whether fd still refers to the file for which it was marked.  Returns
 * false for a negative fd, and true for a descriptor without a mark. */
bool fd_identity_holds(int fd);
/* Called by a thread that has unshared its table of descriptors (CLONE_FILES),
 * before it opens a file.  The numbers of this table are the thread's own: for
 * the calling thread no file is marked or moved, fd_identity_holds returns
 * true, and fd_identity_close closes. */
void fd_identity_apart(void);
/* Has this thread called fd_identity_apart? */
bool fd_identity_is_apart(void);
/* Removes the mark of fd, which stays open: the caller no longer owns fd.  An
 * owner that gives fd to another library must call this function: that library
 * cannot remove the mark, and until the mark is removed, fd_identity_note moves
 * each later file of the owner's library away from the number. */
void fd_identity_forget(int fd);
/* Closes fd if fd_identity_holds(fd), and removes the mark in either case. */
void fd_identity_close(int fd);
/* Does the work of fd_identity_close for a caller that has just called
 * fd_identity_holds(fd), and passes the result. */
void fd_identity_close_if(int fd, bool holds);

#endif
