"""Of what `make bench` computes, without a cluster where that serves."""
