"""The order of an epoch: shuffles, samplers and mixes, and steps packed or filled to a length."""
