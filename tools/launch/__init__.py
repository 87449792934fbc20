"""The launcher itself, from the command line to the exit code, and the plan of a launch."""
