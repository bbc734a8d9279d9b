"""The bill of a node: what comes with an instance, of a node class and pool in a region. Pure.

`terms` is what the settings choose, `book` what AWS charges, `parts` what a node of a type costs beside its
instance, `catalogs` lays these over a catalog, and `room` leaves out types that are too small for what every
node runs.

A catalog of the cloud has the prices of instances, as EC2 knows them, and launches go by these. A catalog
that has been through here has the prices of nodes: plans, consolidation and reports go by those.
"""
