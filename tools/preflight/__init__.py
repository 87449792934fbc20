"""What scripts/preflight.sh does: asks every host of a job what it is like, and says only what differs or blocks."""
