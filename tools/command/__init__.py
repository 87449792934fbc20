"""The command line of a script: its options, its arguments, and the start of the user's program."""
