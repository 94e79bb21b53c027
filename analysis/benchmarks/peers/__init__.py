"""The same work in other libraries and here, side by side: each contender a process of its own, all on one core."""
