"""From which checkpoints of which run a launch goes on."""
