"""The launch plan: from the command line to one line per rank."""
