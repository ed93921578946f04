"""Networks that act but do not learn. ONNX Runtime computes their outputs, so no training framework is imported."""
