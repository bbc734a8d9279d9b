"""The owner's key pair of the local AWS; what `LocalAws.environment` hands out."""

#: Twenty upper-case characters: moto reads nothing else as an access key.
ACCESS_KEY = "AKIANODELESSLOCALKEY"
SECRET_KEY = "nodeless-local-secret-access-key"
