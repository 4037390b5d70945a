"""`python -m kit`."""

import gc
import sys

from kit.cli import main

gc.set_threshold(50_000)  # what imports make lives on, and looking through it again and again is a fifth of a command's start
sys.exit(main())
