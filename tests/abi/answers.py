#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests that functions which adverb exports and does not implement fail as their
return types require: they return a positive or negative errno, NULL or -1 with
errno set, or false.  No call crashes or succeeds.  CALLS has examples of each
return type."""

import argparse
import ctypes
import errno
import os
import pathlib

from report import Report, place

# Library, function, type of its return value, the value, and whether the
# function sets errno to EOPNOTSUPP.
CALLS = (
    ("libibverbs.so.1", "ibv_alloc_dmah", ctypes.c_void_p, None, True),
    ("libibverbs.so.1", "ibv_dealloc_dmah", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libibverbs.so.1", "ibv_dm_export_dmabuf_fd", ctypes.c_int, -1, True),
    ("libibverbs.so.1", "ibv_cmd_create_comp_cntr", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libibverbs.so.1", "ibv_cmd_export_dmabuf_fd", ctypes.c_int, -1, True),
    ("libibverbs.so.1", "ibv_dmabuf_heap_alloc", ctypes.c_void_p, None, True),
    ("libibverbs.so.1", "ibv_cmd_query_port", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libibverbs.so.1", "verbs_open_device", ctypes.c_void_p, None, True),
    ("libibverbs.so.1", "ibv_read_ibdev_sysfs_file", ctypes.c_int, -1, True),
    ("libmlx5.so.1", "mlx5dv_is_supported", ctypes.c_bool, False, False),
    ("libmlx5.so.1", "mlx5dv_open_device", ctypes.c_void_p, None, True),
    ("libmlx5.so.1", "mlx5dv_query_device", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libmlx5.so.1", "mlx5dv_devx_get_event", ctypes.c_ssize_t, -1, True),
    ("libmlx5.so.1", "mlx5dv_devx_uar_export_dmabuf_fd", ctypes.c_int, -1,
     True),
    ("libmlx4.so.1", "mlx4dv_init_obj", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libefa.so.1", "efadv_create_qp_ex", ctypes.c_void_p, None, True),
    ("libefa.so.1", "efadv_query_device", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libefa.so.1", "efadv_get_max_sq_depth", ctypes.c_int,
     -errno.EOPNOTSUPP, False),
    ("libmana.so.1", "manadv_init_obj", ctypes.c_int,
     errno.EOPNOTSUPP, False),
    ("libmana.so.1", "manadv_alloc_pd", ctypes.c_void_p, None, True),
    ("libhns.so.1", "hnsdv_is_supported", ctypes.c_bool, False, False),
)


def ask(library, call, kind, answer, sets_errno):
    """Returns why the result of a call is wrong, or ""."""
    function = getattr(library, call)
    function.restype = kind
    ctypes.set_errno(0)
    got = function(None, None, None, None, None, None)
    if got != answer:
        return f"it returns {got}, not {answer}"
    if sets_errno and ctypes.get_errno() != errno.EOPNOTSUPP:
        return (f"errno is {os.strerror(ctypes.get_errno())}, "
                f"not {os.strerror(errno.EOPNOTSUPP)}")
    return ""


def main():
    arg = argparse.ArgumentParser(description=__doc__)
    arg.add_argument("--lib", required=True, type=pathlib.Path,
                     help="folder of our libraries")
    lib = arg.parse_args().lib.resolve()
    report = Report()
    for name, call, kind, answer, sets_errno in CALLS:
        library = ctypes.CDLL(str(place(lib, name)), use_errno=True)
        report.judge(call, ask(library, call, kind, answer, sets_errno))
    report.finish()


if __name__ == "__main__":
    main()
