"""The rank table of a launch: the one named, one nearby, or a new one."""
