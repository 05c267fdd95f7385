"""A cluster of the user's: it exists, and is changed by declared hooks only.

In: where the cluster is, where its logs are, and the user's commands. Out: a `Cluster`.
Nothing of `chaos` knows of it but the factory of clusters, and faults that heal by a hook.
"""
