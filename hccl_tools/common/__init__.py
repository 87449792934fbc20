"""Code that every package uses: the form of a problem, and how text from outside is displayed."""
