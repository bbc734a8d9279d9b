"""The Kubernetes kinds that we serve: definitions, defaults, rules, and their translation to the model.

Pure: manifests are plain JSON documents (`dict`), in and out. From the smallest word up:

- `kinds`, `times`, `errors`, `names`: names and paths, timestamps, faults, Kubernetes' syntax of names
- `metav1`, `provisioner`, `aws_node_template`, `node_claim`: the typed definitions, one module per kind
- `schema`, `crds`: the custom resource definitions, generated from those definitions
- `schema_validation`: faults of form, found with the same schema that the API server has
- `defaulting`, `validation` and the modules `*_rules`: what admission fills in and refuses
- `warnings`: what is legal but probably not meant
- `reading`, `writing`: manifests to the model and back
"""
