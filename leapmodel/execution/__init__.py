"""The real loop: servers, propose-verify-commit, training the draft, measured traces."""
