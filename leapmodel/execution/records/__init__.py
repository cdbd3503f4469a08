"""Write what the loop does as it does it, and go on with what was written."""
