"""Starting of distributed runs: on this machine, or on Kubernetes."""
