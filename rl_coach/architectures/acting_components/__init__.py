"""Networks that only act: ONNX Runtime predicts, nothing learns, and no training framework is imported."""
