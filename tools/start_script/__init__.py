"""Launches what a start script starts, if it starts the ranks itself: in a loop, by mpirun or by msrun (--zoo)."""
