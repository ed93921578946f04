"""Networks built with Keras 3, for every framework that Keras runs on."""
