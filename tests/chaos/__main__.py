"""`python -m tests.chaos`."""

import sys

from tests.chaos import main

sys.exit(main.main())
