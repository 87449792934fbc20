"""The command mslaunch: finds the command for its arguments, and decides where a launch without a placement runs."""
