# SPDX-License-Identifier: BSD-2-Clause
"""Writes of blocks that qemu-io makes, and the disk's bytes after them."""

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
