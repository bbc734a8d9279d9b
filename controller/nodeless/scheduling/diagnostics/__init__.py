"""Why a pod got no capacity, and the smallest change that would give it some."""
