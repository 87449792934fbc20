"""The check of the pods of a job, which no ssh joins: they connect to one of them, which compares their facts."""
