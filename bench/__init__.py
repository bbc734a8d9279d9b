"""What `make bench` and `make soak` measure and print: packing, admission, nodes, consolidation, the peer."""
