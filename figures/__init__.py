"""Figures of papers and the gallery, each drawn from a record."""
