"""What every room uses: the form of a problem, and how text from outside is shown."""
