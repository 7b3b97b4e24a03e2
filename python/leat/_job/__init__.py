"""The place of a process in its job, and how the ranks of the job agree."""
