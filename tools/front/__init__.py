"""The command mslaunch: which of our commands its words mean, and where a launch runs that nobody has placed."""
