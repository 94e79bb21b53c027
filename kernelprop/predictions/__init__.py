"""Closed forms that papers state, one file a paper."""
