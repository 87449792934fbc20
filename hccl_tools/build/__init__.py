"""How a rank table is made: super pods, several tables into one, the file that is written."""
