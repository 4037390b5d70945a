"""Tests. This package is imported before any of the kit: what a process reads as it starts stands here."""

import os

# The vectors of the offline stand-in are short. OpenBLAS gives each product of theirs to a thread
# for every core all the same, and threads that wait for each other took two thirds of the
# processor time of a turn. A process without threads can be forked, too (tests/forks.py).
os.environ["OPENBLAS_NUM_THREADS"] = "1"
