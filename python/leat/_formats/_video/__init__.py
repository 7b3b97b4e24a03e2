"""Video in MP4 and WebM files: clips of it are read by ranges."""
