"""Speed and memory, as ratios of things measured side by side in one run."""
