"""What a network is trained on: sources of batches, each with a file."""
