"""`python -m tests.field`."""

import sys

from tests.field import main

sys.exit(main.main())
