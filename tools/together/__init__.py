"""Whether the ranks of a job train one thing together: what speaks against it, each with its evidence."""
