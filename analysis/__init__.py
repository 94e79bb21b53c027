"""Studies: a question, a sweep, a record."""
