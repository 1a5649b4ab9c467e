#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the program badinput, and reports each of its cases as a case."""

import sys

sys.path.insert(1, sys.path[0] + "/../lib")

import system

t = system.Suite(__doc__)
t.checks("badinput", "bad input")
t.end()
