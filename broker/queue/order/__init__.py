"""What is ready, in its order: in memory, on disk, given back; and the reads that are under way."""
