"""Files: the seam to the operating system, open files, trees of directories, free space."""
