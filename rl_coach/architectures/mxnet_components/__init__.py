"""MXNet: networks over ``mx.np`` arrays, training steps with ``autograd``, and their export to ONNX."""
