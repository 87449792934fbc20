"""Two rank tables side by side: what differs in meaning, and how a person or a program reads it."""
