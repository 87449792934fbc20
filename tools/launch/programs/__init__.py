"""What ranks run: the trainer or a program, its command, and what its own files show."""
