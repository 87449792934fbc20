"""Changes to scripts and to ranks' variables that tests/bats/rank_environment.bats must notice: `make mutations`."""
