"""Train a draft on what the target did, and make the small models that a CPU can run."""

import os

# Before torch is loaded. Its threads wait for each other after every operation, by spinning if not
# told otherwise; on a core that somebody else needs, a tiny model's step takes ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
