"""Makes rank tables: of a super pod, of several tables merged into one, and the file."""
