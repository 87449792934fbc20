"""A start script that starts the ranks itself, in a loop, by mpirun or by msrun: what it starts is launched (--zoo)."""
