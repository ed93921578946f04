"""JAX: compiled training steps over Keras networks, and their export to ONNX."""
