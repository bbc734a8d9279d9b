"""Of the environment on one machine: its parts, each on its own."""
