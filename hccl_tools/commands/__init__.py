"""The commands: their arguments, messages and exit codes."""
