"""TAB completion in bash and zsh for our command lines: the shells ask, Python answers."""
