"""Makes the generated pages of docs/."""
