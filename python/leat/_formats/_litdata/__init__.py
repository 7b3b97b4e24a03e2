"""The chunks that LitData writes."""
