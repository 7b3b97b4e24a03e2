"""The batches that a program gets: their fields, types and frameworks."""
