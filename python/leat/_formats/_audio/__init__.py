"""Sound in WAV and FLAC files: segments of it are read by ranges."""
