"""One queue on disk: index segments in files of either version, reading, conversion, and the way back after a crash."""
