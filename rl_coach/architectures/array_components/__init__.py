"""Networks made of array operations, for MXNet and PyTorch, where Coach does not use Keras."""
