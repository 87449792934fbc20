"""TAB in bash and zsh: what may come next in a command line of ours.  The shells ask; Python knows."""
