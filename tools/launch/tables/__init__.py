"""The rank table of a launch: the one that the user names, one nearby, or a new one."""
