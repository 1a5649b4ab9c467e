#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the badinput program and counts its lines as cases."""

import system

t = system.Suite(__doc__)
if not t.options.list:
    t.checks("badinput", "bad input")
t.end()
