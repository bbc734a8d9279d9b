"""What room there is, and what can be bought: nodes, claims, pools with their types, prices and limits."""
