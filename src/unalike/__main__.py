"""Entry point of `python -m unalike`."""

from __future__ import annotations

import sys

from unalike.cli.main import main

sys.exit(main())
