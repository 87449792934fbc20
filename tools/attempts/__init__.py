"""The launchers of several hosts agree on the attempts of a job: one process beside each of them."""
