"""The commands: arguments, messages and exit codes."""
