"""The arithmetic of topology spread: how many pods of a batch each domain gets."""
