"""The command line of a script: its options, its arguments, and where the user's program begins."""
