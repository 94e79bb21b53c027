"""Matrices that mix positions, as operators: given, structured, signal-preserving."""
