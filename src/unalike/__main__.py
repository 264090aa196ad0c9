"""`python -m unalike` is the command `unalike`."""

import sys

from unalike.cli.main import main

sys.exit(main())
