"""The formats of data that Python reads: a folder or a file for each."""
