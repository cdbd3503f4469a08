"""The real loop: servers, clients, rounds, and what makes sure that they are what they say."""
