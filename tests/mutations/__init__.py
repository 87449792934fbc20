"""Changes to scripts and to ranks' variables that tests/scripts/rank_environment.bats must notice: `make mutations`."""
