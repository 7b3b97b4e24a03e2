"""`leat prepare FLOW.toml`: a dataset is indexed, verified, packed and warmed, step by step.

A step is made of units, and a unit that is done has a note in the state of the flow (`_state`) or,
of shards, in their own folder. The source and the flow alone decide which units there are and what
they write. So a call that was killed is called again as it was: it does the units that have no note,
and last of all it writes the manifest, which says that all of it is done.
"""
