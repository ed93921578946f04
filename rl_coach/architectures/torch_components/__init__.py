"""PyTorch: networks of tensors, training steps compiled by Inductor, and support for users' modules."""
