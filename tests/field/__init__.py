"""The answers about real failures, compared with the right ones: `python -m tests.field`."""
