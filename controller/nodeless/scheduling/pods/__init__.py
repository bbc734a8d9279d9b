"""What pods ask: which are looked at, what they require of a node and of each other, and their classes."""
