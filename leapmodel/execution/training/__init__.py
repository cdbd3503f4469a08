"""Train a draft on what the target did, and make the small models that a CPU can run."""
