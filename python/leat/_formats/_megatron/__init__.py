"""Megatron's token files, and its order of samples."""
