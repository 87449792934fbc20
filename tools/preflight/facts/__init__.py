"""What a host tells of itself: one module per subject, each with functions that take the Question and give facts."""
