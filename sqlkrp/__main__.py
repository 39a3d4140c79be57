"""``python -m sqlkrp``: the command line."""

import sys

from sqlkrp.cli import main

sys.exit(main())
