"""What `make bench` and `make soak` print: packing, admission, nodes, consolidation, start, the peer."""
