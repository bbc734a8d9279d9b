"""The cheaper plan: column generation over node shapes in a time box, and the lower bound that proves it."""
