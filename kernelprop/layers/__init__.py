"""The layers of a transformer; each file holds one layer's faces side by side."""
