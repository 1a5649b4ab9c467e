/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent: runs shell commands in the guest, one for each TCP connection.  The
 * client sends the command as one line.  The agent sends back the command's
 * output, and then "\nexit STATUS\n".  The command writes to a pseudoterminal,
 * so libc buffers its output by lines, and the client gets each line at once.
 * When the client closes the connection, the agent kills the command.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define PORT 5000

/* Reads a line, without its newline, into `line`, of `size` bytes; a longer
 * line is cut.  Returns the length of the text, which is 0 if the line is empty
 * or the client has sent nothing. */
static size_t read_line(int fd, char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(fd, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = 0;
	return n;
}

/* Copies the output of the command to the client until the command ends.  Kills
 * the command if the client closes the connection or a write to the client
 * fails. */
static void copy_output(int fd, int from, pid_t child)
{
	struct pollfd p[2] = {
		{.fd = from, .events = POLLIN},
		{.fd = fd, .events = POLLRDHUP},
	};
	char bytes[4096];
	ssize_t n = 1;

	while (n > 0) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents) {
			kill(-child, SIGKILL);
			break;
		}
		n = read(from, bytes, sizeof(bytes));
		if (n > 0 && write(fd, bytes, (size_t)n) != n)
			kill(-child, SIGKILL);
	}
}

static void serve_client(int fd)
{
	char line[8192], last[32];
	struct termios raw = {0};
	int terminal, status = 0;
	pid_t child;

	if (!read_line(fd, line, sizeof(line)))
		return;
	cfmakeraw(&raw);
	child = forkpty(&terminal, NULL, &raw, NULL);
	if (child < 0)
		return;
	if (child == 0) {
		close(fd);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	copy_output(fd, terminal, child);
	waitpid(child, &status, 0);
	snprintf(last, sizeof(last), "\nexit %d\n",
		 WIFEXITED(status) ? WEXITSTATUS(status)
				   : 128 + WTERMSIG(status));
	if (write(fd, last, strlen(last)) < 0)
		return; /* the client has closed the connection */
}

int main(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6,
				   .sin6_port = htons(PORT)};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) ||
	    listen(listener, 64))
		return 1;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (fd < 0)
			continue;
		if (fork() == 0) {
			close(listener);
			serve_client(fd);
			_exit(0);
		}
		close(fd);
	}
}
