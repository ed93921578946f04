"""PyTorch: networks over tensors, training steps compiled by Inductor, and modules of users."""
