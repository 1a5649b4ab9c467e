#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests programs that close all descriptors while a device is open."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system

t = system.Suite(__doc__)
t.checks("daemoncheck", None)
t.end()
