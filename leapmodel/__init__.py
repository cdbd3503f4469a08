"""leapmodel."""
