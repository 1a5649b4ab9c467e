# SPDX-License-Identifier: BSD-2-Clause
"""Disks of iSER: files that tgtd exports, writes of blocks that qemu-io makes, and
the bytes of a disk after these writes."""

import os
import random


def random_writes(disk_bytes):
    """Returns the arguments of qemu-io that write 60 ranges of an empty disk and
    read each back, and the bytes of the disk afterwards."""
    dice = random.Random(5)
    image = bytearray(disk_bytes)
    commands = []
    for _ in range(60):
        size = 512 * dice.choice((1, 2, 7, 8, 64, 200, 256))
        at = 512 * dice.randrange((disk_bytes - size) // 512)
        fill = dice.randrange(1, 256)
        image[at:at + size] = bytes([fill]) * size
        for verb in "write", "read":
            commands += ["-c", "%s -P %d %d %d" % (verb, fill, at, size)]
    return commands, image


def blank_disk(suite, disk_bytes):
    """Returns the path of a new file that any user may write."""
    disk = suite.path("disk")
    with open(disk, "wb") as f:
        f.truncate(disk_bytes)
    os.chmod(disk, 0o666)
    return disk


def exports(disk, target, initiator):
    """Returns the arguments of each call of tgtadm by which tgtd exports the file
    @disk to this initiator."""
    return (
        ["target", "--op", "new", "--tid", "1", "-T", target],
        ["logicalunit", "--op", "new", "--tid", "1", "--lun", "1", "-b", disk],
        ["target", "--op", "bind", "--tid", "1", "-I", "ALL"],
        ["target", "--op", "bind", "--tid", "1", "-Q", initiator])
