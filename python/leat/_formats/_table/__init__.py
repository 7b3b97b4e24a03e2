"""Tables that list samples: a manifest becomes a catalogue, a batch of rows at a time."""
