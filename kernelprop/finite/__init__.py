"""The finite-width reading of a description: weights are sampled, the network runs, its numbers are measured."""
