"""The statements of the founding papers as checks that can fail: ``python -m paper_checks``."""
