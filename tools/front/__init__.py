"""The command mslaunch: finds the command for its arguments, and where a launch without a placement runs."""
