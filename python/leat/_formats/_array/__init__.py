"""Arrays in ``.npy``, HDF5 and Zarr files: their chunks are found once, and read by ranges."""
