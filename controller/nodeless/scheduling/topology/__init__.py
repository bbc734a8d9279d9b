"""What is counted in which domain while a solve goes on, and what rules between pods still allow there."""
